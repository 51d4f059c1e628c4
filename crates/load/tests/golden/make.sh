#!/usr/bin/env bash
# Makes ycsb-0.17.0.txt anew from YCSB itself. Needs a JDK (17 or newer) and Maven.
set -euo pipefail
cd "$(dirname "$0")"
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
# HdrHistogram is what the workload's measurements are made with; none of it is in the draws.
for artifact in site.ycsb:core:0.17.0 org.hdrhistogram:HdrHistogram:2.1.4; do
    mvn --quiet --batch-mode dependency:copy -Dartifact="$artifact" -DoutputDirectory="$build"
done
javac -Xlint:all -Werror -cp "$build/*" -d "$build" YcsbDraws.java
java --add-opens java.base/java.lang=ALL-UNNAMED -cp "$build:$build/*" YcsbDraws >"$build/draws"
mv "$build/draws" ycsb-0.17.0.txt
