//! The time of an export, including the release of everything.

mod calls;

use core::time::Duration;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

fn export(criterion: &mut Criterion) {
    for call in calls::CALLS {
        criterion.benchmark_group(call.group).bench_function(
            BenchmarkId::from_parameter(call.name),
            |bencher| {
                bencher.iter_custom(|turns| {
                    let start = Instant::now();
                    (call.repeat)(turns);
                    start.elapsed()
                });
            },
        );
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = export
}
criterion_main!(benches);
