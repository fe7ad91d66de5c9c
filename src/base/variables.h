#pragma once

#include <string>
#include <string_view>

namespace assay {

// The text with $NAME and ${NAME} replaced by environment variables. An unset variable stays as it
// is written.
std::string with_variables(std::string_view text);

}  // namespace assay
