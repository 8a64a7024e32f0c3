// The report as a table for people, JSON for programs, Markdown for docs/BENCHMARKS.md and an SVG drawn by hand.
#pragma once

#include <string>

#include "bench/rows.h"

namespace belljar::bench {

// Where and when: kernel, processors, load, scheduling. One line.
std::string circumstances();

// "5.64 ms": microseconds in the unit that reads best, all else as it is.
std::string quantity(double value, const std::string& unit);

std::string to_table(const Report& report);
std::string to_json(const Report& report);
// `page` with a section for each measured group, in place of the one it had; what else the page says stays.
std::string to_markdown(std::string page, const Report& report, const std::string& command);
// Starts, work on files, bursts and density beside the peers, of what there is; "": none. For light and for dark ground.
std::string to_svg(const Report& report);

}  // namespace belljar::bench
