#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace assay {

// Element types. The order is part of the wire and store formats: append only.
enum class DType : std::uint8_t {
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,
  complex128,
  float8_e4m3fn,
  float8_e5m2,
  uint16,
  uint32,
  uint64,
};

enum class DTypeClass : std::uint8_t { boolean, integer, floating, complex };

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  std::uint8_t size;  // bytes of one element
  DTypeClass kind;
};

inline constexpr std::array<DTypeInfo, 17> kDTypes{{
    {DType::boolean, "bool", 1, DTypeClass::boolean},
    {DType::int8, "int8", 1, DTypeClass::integer},
    {DType::int16, "int16", 2, DTypeClass::integer},
    {DType::int32, "int32", 4, DTypeClass::integer},
    {DType::int64, "int64", 8, DTypeClass::integer},
    {DType::uint8, "uint8", 1, DTypeClass::integer},
    {DType::float16, "float16", 2, DTypeClass::floating},
    {DType::bfloat16, "bfloat16", 2, DTypeClass::floating},
    {DType::float32, "float32", 4, DTypeClass::floating},
    {DType::float64, "float64", 8, DTypeClass::floating},
    {DType::complex64, "complex64", 8, DTypeClass::complex},
    {DType::complex128, "complex128", 16, DTypeClass::complex},
    {DType::float8_e4m3fn, "float8_e4m3fn", 1, DTypeClass::floating},
    {DType::float8_e5m2, "float8_e5m2", 1, DTypeClass::floating},
    {DType::uint16, "uint16", 2, DTypeClass::integer},
    {DType::uint32, "uint32", 4, DTypeClass::integer},
    {DType::uint64, "uint64", 8, DTypeClass::integer},
}};

constexpr const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }
constexpr std::string_view name(DType dtype) { return info(dtype).name; }
constexpr std::size_t size_of(DType dtype) { return info(dtype).size; }

// Finds a dtype by its exact name; nothing for an unknown name.
constexpr std::optional<DType> find_dtype(std::string_view text) {
  for (const DTypeInfo& entry : kDTypes) {
    if (entry.name == text) return entry.dtype;
  }
  return std::nullopt;
}

}  // namespace assay
