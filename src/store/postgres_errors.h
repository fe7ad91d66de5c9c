#pragma once

// Messages for errors of PostgreSQL: one line with advice, and without passwords.

#include <exception>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::postgres {

inline constexpr std::string_view kDiskIsFull =
    "the database's disk is full: free some space there (no recorded result is lost)";

// The first line of the exception's message, with advice if there is some. (The other lines hold
// libpq's hints and the statement.)
Error database_error(const std::exception& error);

// An error if libpq cannot parse the address. It omits libpq's message where that may quote a
// password.
Status check_address(const std::string& address);

// Whether the address contains a password.
bool has_password(const std::string& address);

// The address without its password, for messages.
std::string without_password(std::string_view address);

}  // namespace assay::postgres
