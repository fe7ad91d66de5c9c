#pragma once

// Random cases for property tests: a tree of its own, printers that share nothing with the code
// under test, and a comparison of the tree with what was parsed.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "case/case.h"

namespace assay {

struct RandomValue {
  ValueKind kind = ValueKind::none;
  std::int64_t integer = 0;  // boolean, integer
  double real = 0;
  double imaginary = 0;
  std::string text;  // string, big_integer, place; the place of a tensor
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // none, or as many as the shape has extents
  DType dtype = DType::float32;
  DTypeForm form = DTypeForm::dtype;
  std::vector<RandomValue> children;
};

struct RandomCase {
  std::string api;
  std::vector<std::pair<std::string, RandomValue>> arguments;
  std::size_t construction = 0;  // the first so many make a layer
  bool constructs = false;
};

using Random = std::mt19937_64;

// `size` bounds the values of the case, roughly; small ones collide often.
RandomCase random_case(Random& random, unsigned size);

// One of the many ways to write it: blanks, trailing commas, quotes, brackets and number forms
// vary.
std::string write_somehow(const RandomCase& source, Random& random);

// Empty when `parsed` is what `source` says; otherwise what differs.
std::string difference(const RandomCase& source, const Case& parsed);

}  // namespace assay
