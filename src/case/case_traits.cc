#include "case/case_traits.h"

#include "case/parser.h"

namespace assay {

std::string_view api_of(std::string_view case_text) {
  return case_text.substr(0, case_text.find('('));
}

std::string_view first_dtype(std::string_view case_text) {
  const std::size_t tensor = case_text.find("Tensor(");
  const std::size_t open = tensor == std::string_view::npos ? tensor : case_text.find('"', tensor);
  if (open == std::string_view::npos) return {};
  const std::size_t close = case_text.find('"', open + 1);
  return close == std::string_view::npos ? std::string_view()
                                         : case_text.substr(open + 1, close - open - 1);
}

std::size_t size_of_case(std::string_view case_text) {
  Case parsed;
  if (!parse_case(case_text, parsed)) return 0;
  const std::uint64_t elements = parsed.total_elements();
  std::size_t size = elements > 0 ? 1 : 0;
  for (std::uint64_t most = 100; elements > most && size + 1 < kSizes.size(); most *= 100) ++size;
  return size;
}

CaseTraits traits_of(std::string_view case_text) {
  return {std::string(api_of(case_text)), std::string(first_dtype(case_text)),
          static_cast<std::uint8_t>(size_of_case(case_text))};
}

}  // namespace assay
