#include "wire/settings.h"

#include <flatbuffers/minireflect.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <system_error>

namespace assay::wire {
namespace {

class Lister : public flatbuffers::IterationVisitor {
 public:
  std::vector<Setting> take() { return std::move(found_); }

  void Field(std::size_t, std::size_t, flatbuffers::ElementaryType type, bool is_vector,
             const flatbuffers::TypeTable*, const char* name, const std::uint8_t* value) override {
    name_ = is_vector ? std::string_view() : name;
    if (value == nullptr && type == flatbuffers::ET_STRING) add(std::string());
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

  std::string_view name_;  // of the next value's field; empty in a vector
  std::vector<Setting> found_;
};

template <typename Table>
std::vector<Setting> list(const typename Table::NativeTableType& settings) {
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);  // otherwise fields with their default are left out
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

template <typename Number>
bool add_number(flatbuffers::FlatBufferBuilder& builder, flatbuffers::voffset_t field,
                std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  builder.AddElement<Number>(field, value, Number{});
  return true;
}

// Adds the field with the value that `text`, written by text_of(), means. False if it is invalid.
bool add_field(flatbuffers::FlatBufferBuilder& builder, flatbuffers::voffset_t field,
               flatbuffers::ElementaryType type, std::string_view text) {
  switch (type) {
    case flatbuffers::ET_BOOL:
      builder.AddElement<std::uint8_t>(field, text == "true" ? 1 : 0, 0);
      return text == "true" || text == "false";
    case flatbuffers::ET_INT:
      return add_number<std::int32_t>(builder, field, text);
    case flatbuffers::ET_UINT:
      return add_number<std::uint32_t>(builder, field, text);
    case flatbuffers::ET_LONG:
      return add_number<std::int64_t>(builder, field, text);
    case flatbuffers::ET_ULONG:
      return add_number<std::uint64_t>(builder, field, text);
    case flatbuffers::ET_DOUBLE:
      return add_number<double>(builder, field, text);
    default:
      return false;
  }
}

}  // namespace

Result<CaseSettingsT> settings_of(const std::map<std::string, std::string>& properties) {
  const flatbuffers::TypeTable& table = *CaseSettingsTypeTable();
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);  // 0 may differ from the default
  // FlatBuffers needs all strings before the table.
  std::map<std::string, flatbuffers::Offset<flatbuffers::String>> texts;
  for (std::size_t i = 0; i < table.num_elems; ++i) {
    const auto found = properties.find(table.names[i]);
    if (table.type_codes[i].base_type != flatbuffers::ET_STRING) continue;
    if (found != properties.end()) texts[found->first] = builder.CreateString(found->second);
  }
  const auto start = builder.StartTable();
  for (std::size_t i = 0; i < table.num_elems; ++i) {
    const auto found = properties.find(table.names[i]);
    if (found == properties.end()) continue;
    const auto type = static_cast<flatbuffers::ElementaryType>(table.type_codes[i].base_type);
    const auto field = flatbuffers::FieldIndexToOffset(static_cast<flatbuffers::voffset_t>(i));
    if (type == flatbuffers::ET_STRING) {
      builder.AddOffset(field, texts[found->first]);
    } else if (!add_field(builder, field, type, found->second)) {
      return fail(fmt::format("the run's property {} has the invalid value “{}”", found->first,
                              found->second));
    }
  }
  builder.Finish(flatbuffers::Offset<CaseSettings>(builder.EndTable(start)));
  CaseSettingsT settings;
  flatbuffers::GetRoot<CaseSettings>(builder.GetBufferPointer())->UnPackTo(&settings);
  return settings;
}

std::vector<Setting> fields_of(const CaseSettingsT& settings) {
  return list<CaseSettings>(settings);
}

std::vector<Setting> fields_of(const LaneSpecT& spec) { return list<LaneSpec>(spec); }

std::string text_of(const SettingValue& value) { return std::visit(AsText{}, value); }

}  // namespace assay::wire
