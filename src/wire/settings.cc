#include "wire/settings.h"

#include <flatbuffers/minireflect.h>

#include <array>
#include <charconv>

namespace assay::wire {
namespace {

class Lister : public flatbuffers::IterationVisitor {
 public:
  std::vector<Setting> take() { return std::move(found_); }

  void Field(std::size_t, std::size_t, flatbuffers::ElementaryType type, bool is_vector,
             const flatbuffers::TypeTable*, const char* name, const std::uint8_t* value) override {
    name_ = is_vector ? std::string_view() : name;
    if (value == nullptr && type == flatbuffers::ET_STRING) add(std::string());  // an empty one
  }
  void Bool(bool value) override { add(value); }
  void UChar(std::uint8_t value, const char* word) override {
    if (word != nullptr) {
      add(std::string(word));
    } else {
      add(std::uint64_t{value});
    }
  }
  void Int(std::int32_t value, const char*) override { add(std::int64_t{value}); }
  void UInt(std::uint32_t value, const char*) override { add(std::uint64_t{value}); }
  void Long(std::int64_t value) override { add(value); }
  void ULong(std::uint64_t value) override { add(value); }
  void Double(double value) override { add(value); }
  void String(const flatbuffers::String* value) override { add(value->str()); }

 private:
  void add(SettingValue value) {
    if (!name_.empty()) found_.push_back({name_, std::move(value)});
  }

  std::string_view name_;  // of the field whose value comes next; empty in a vector
  std::vector<Setting> found_;
};

template <typename Table>
std::vector<Setting> list(const typename Table::NativeTableType& settings) {
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);  // what has its default would be left out, and so not be listed
  builder.Finish(Table::Pack(builder, &settings));
  Lister lister;
  flatbuffers::IterateFlatBuffer(builder.GetBufferPointer(), Table::MiniReflectTypeTable(),
                                 &lister);
  return lister.take();
}

struct AsText {
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  template <typename Number>
  std::string operator()(Number value) const {
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    return {digits.data(), end};
  }
};

}  // namespace

std::vector<Setting> fields_of(const CaseSettingsT& settings) {
  return list<CaseSettings>(settings);
}

std::vector<Setting> fields_of(const LaneSpecT& spec) { return list<LaneSpec>(spec); }

std::string text_of(const SettingValue& value) { return std::visit(AsText{}, value); }

}  // namespace assay::wire
