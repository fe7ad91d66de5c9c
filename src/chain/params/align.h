#pragma once

// Lays the lines of one section along the places of its layout, so that one line too few or too
// many is found where it is, instead of shifting every later line into a wrong place.

#include <span>
#include <vector>

#include "chain/params/layouts.h"
#include "chain/params/params_text.h"

namespace assay::chain::params {

struct Placed {
  const Place* place = nullptr;
  const Line* line = nullptr;
};

struct Alignment {
  std::vector<Placed> placed;     // entries only; every place of the layout when nothing is wrong
  std::vector<Problem> problems;  // missing and surplus lines, misspelt and doubled keys
  int cost = 0;                   // 0: the file fits; larger: the layout is less likely meant
};

// The cheapest way of editing the lines into the places (Wagner and Fischer's edit distance, with
// a cost for a line in a place that tells a free key from a fixed one). `end_line` is where a line
// missing at the section's end is reported.
Alignment align_section(std::span<const Place> places, std::span<const Line> lines, int end_line);

}  // namespace assay::chain::params
