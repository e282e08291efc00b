#include <benchmark/benchmark.h>

#include "contenders.hpp"

/// The rows of the in-process table. `run_local.py` runs them and makes the table; by hand:
///   bench_local --benchmark_filter=^point_x/
int main(int argc, char** argv) {
  tenure::bench::register_points();
  tenure::bench::register_transactions();
  tenure::bench::register_ranges();
  tenure::bench::register_deadlocks();
  tenure::bench::register_names();
  tenure::bench::register_hand_over();

  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  for (const auto& end : tenure::bench::at_end_of_main) {
    end();
  }
  return 0;
}
