//! The driver on dyno's own engine, in the assemblies that it is built with.

use dyno_glass::assembly::{self, Spec};
use serde_json::{Value, json};

use crate::support::{Folder, drive, with};

fn tpcc(backend: Value) -> Value {
    json!({
        "format": 1, "phase": "run", "backend": backend,
        "workload": {"kind": "tpcc", "warehouses": 2, "items": 200, "customers_per_district": 30},
        "clients": 1, "operations": 200, "seed": 7, "interval_ms": 100,
    })
}

fn assert_consistent(result: &Value) {
    let checks = result["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 4, "{checks:?}");
    assert!(checks.iter().all(|check| check["holds"] == json!(true)));
}

/// Loads where anything is kept, runs, and looks at what is stored.
fn carry_out(folder: &Folder, backend: Value, rollbacks: f64, clients: u32) -> Value {
    let volatile = backend.get("folder").is_none();
    let job = with(
        tpcc(backend),
        json!({"workload": {"rollbacks": rollbacks}, "clients": clients}),
    );
    if volatile {
        let result = drive(folder, &job).ok();
        assert_consistent(&result);
        return result;
    }
    drive(
        folder,
        &with(job.clone(), json!({"phase": "load", "operations": null})),
    )
    .ok();
    // Of several clients at two warehouses some give way to others, and are not tried again.
    let result = drive(folder, &with(job.clone(), json!({"max_share_failed": 0.2}))).ok();
    let check = json!({"phase": "check", "operations": null, "clients": 1});
    assert_consistent(&drive(folder, &with(job, check)).ok());
    result
}

fn backend_of(folder: &Folder, spec: Spec) -> Value {
    let mut backend = json!({"kind": "glass", "assembly": spec.to_string(), "log": "memory"});
    if spec.buffer {
        backend["folder"] = json!(folder.text("glass"));
        backend["pool_bytes"] = json!(32 << 20);
        backend["preload"] = json!(true);
    }
    backend
}

#[test]
fn tpcc_keeps_the_assemblies_of_the_path_consistent() {
    let path = assembly::path();
    assert_eq!(path.len(), 9);
    for spec in path {
        let folder = Folder::new();
        let rollbacks = if spec.transactions { 0.05 } else { 0.0 };
        let result = carry_out(&folder, backend_of(&folder, spec), rollbacks, 1);
        let effective = &result["backend"]["effective"];
        assert_eq!(effective["assembly"], json!(spec.to_string()));
        assert_eq!(effective["page_size_bytes"], json!(spec.page_size()));
        assert_eq!(effective["pages_in_files"], json!(spec.buffer));
        // All is in memory before transactions go on.
        for moved in [
            "pages_read_bytes",
            "pages_written_bytes",
            "log_written_bytes",
        ] {
            assert_eq!(
                result["backend"]["status"][moved],
                json!(0.0),
                "{spec}: {moved}"
            );
        }
    }
}

#[test]
fn several_clients_keep_a_synced_engine_consistent() {
    let folder = Folder::new();
    let backend = json!({"kind": "glass", "folder": folder.text("glass")});
    let result = carry_out(&folder, backend, 0.01, 4);
    let status = &result["backend"]["status"];
    assert!(status["log_syncs"].as_f64().unwrap() > 0.0, "{status}");
    assert!(
        status["log_written_bytes"].as_f64().unwrap() > 100.0,
        "{status}"
    );
}

#[test]
fn the_kernel_loads_runs_and_is_looked_at_in_one_job() {
    let folder = Folder::new();
    let result = carry_out(
        &folder,
        json!({"kind": "glass", "assembly": "kernel"}),
        0.0,
        1,
    );
    assert_eq!(result["total"]["count"], json!(200));
    assert_eq!(result["backend"]["effective"]["assembly"], json!("kernel"));
}

#[test]
fn ycsb_finds_every_row_as_it_was_written() {
    let folder = Folder::new();
    let ycsb = json!({
        "kind": "ycsb", "records": 500, "field_count": 4, "field_length_bytes": 60, "max_scan_length": 20,
        "data_integrity": true, "proportions":
        {"read": 0.3, "update": 0.3, "insert": 0.2, "scan": 0.1, "read_modify_write": 0.1},
    });
    let job = json!({
        "format": 1, "phase": "run", "clients": 3, "operations": 2000, "seed": 42, "interval_ms": 50,
        "backend": {"kind": "glass", "folder": folder.text("glass"), "log": "written"}, "workload": ycsb,
    });
    drive(
        &folder,
        &with(job.clone(), json!({"phase": "load", "operations": null})),
    )
    .ok();
    let result = drive(&folder, &job).ok();
    assert_eq!(result["total"]["count"], json!(2000));
    assert_eq!(result["total"]["errors"], json!({}));
    assert!(
        result["backend"]["status"]["rows_scanned"]
            .as_f64()
            .unwrap()
            > 100.0
    );
    let other = with(job.clone(), json!({"workload": {"field_count": 5}}));
    let refused = drive(&folder, &other).failure();
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(said.contains("240 bytes"), "{said}");
    // What keeps nothing loads its rows itself.
    let mut memory = with(job, json!({"clients": 1}));
    memory["backend"] = json!({"kind": "glass", "assembly": "none", "log": "memory"});
    let result = drive(&folder, &memory).ok();
    assert_eq!(result["total"]["count"], json!(2000));
}
