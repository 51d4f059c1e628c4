"""Frozen values with units that every other room speaks in. Imports nothing of ours."""
