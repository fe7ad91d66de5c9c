#include "native/dlpack.h"

#include <memory>
#include <optional>
#include <utility>

namespace assay::native {
namespace {

// The structures of DLPack before version 1.0 (https://dmlc.github.io/dlpack/latest/c_api.html).
struct Device {
  std::int32_t type;
  std::int32_t number;
};
struct ElementType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  std::int32_t axes;
  ElementType type;
  std::int64_t* shape;
  std::int64_t* strides;  // null: dense
  std::uint64_t offset;
};
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed* self);
};
constexpr std::int32_t kOnHost = 1;
constexpr const char* kOffered = "dltensor";  // a framework that takes the capsule renames it

struct Owned {
  Managed managed;
  SharedTensor memory;
  std::vector<std::int64_t> shape;
};

void end(Managed* self) { std::unique_ptr<Owned>(static_cast<Owned*>(self->context)).reset(); }

// Destroys a capsule that no framework has taken.
void end_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kOffered) == 0) return;
  end(static_cast<Managed*>(PyCapsule_GetPointer(capsule, kOffered)));
}

std::optional<std::uint8_t> code_of(DType dtype) {
  constexpr std::uint8_t kSigned = 0;
  constexpr std::uint8_t kUnsigned = 1;
  constexpr std::uint8_t kFloat = 2;
  constexpr std::uint8_t kBFloat = 4;
  constexpr std::uint8_t kComplex = 5;
  constexpr std::uint8_t kBool = 6;
  switch (dtype) {
    case DType::boolean:
      return kBool;
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64:
      return kSigned;
    case DType::uint8:
      return kUnsigned;
    case DType::float16:
    case DType::float32:
    case DType::float64:
      return kFloat;
    case DType::bfloat16:
      return kBFloat;
    case DType::complex64:
    case DType::complex128:
      return kComplex;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool known_to_dlpack(DType dtype) { return code_of(dtype).has_value(); }

Ref to_capsule(SharedTensor tensor, DType dtype, std::vector<std::int64_t> shape) {
  auto owned = std::make_unique<Owned>(Owned{{}, std::move(tensor), std::move(shape)});
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  owned->managed.tensor = {owned->memory.memory().data(),
                           {kOnHost, 0},
                           static_cast<std::int32_t>(owned->shape.size()),
                           {code_of(dtype).value_or(0), bits, 1},
                           owned->shape.data(),
                           nullptr,
                           0};
  owned->managed.context = owned.get();
  owned->managed.deleter = end;
  Ref capsule(PyCapsule_New(&owned->managed, kOffered, end_capsule));
  if (capsule) (void)owned.release();
  return capsule;
}

}  // namespace assay::native
