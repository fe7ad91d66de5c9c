#pragma once

// Text of others inside HTML and XML.

#include <string>
#include <string_view>

namespace assay {

// Markup is escaped, also for attributes in double quotes; a line's end is kept as a reference,
// since a bare one is a blank in an attribute; what XML 1.0 has no way to write (control
// characters, bytes that are no UTF-8) becomes '?'.
std::string escape_markup(std::string_view text);

}  // namespace assay
