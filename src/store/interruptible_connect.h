#pragma once

// How a connection to PostgreSQL is opened: with libpq's calls that do not block, so that
// interrupt_sockets() ends the attempt, and the address's connect_timeout limits it.

#include <pqxx/connectionpolicy>

namespace assay {

class InterruptibleConnect : public pqxx::connectionpolicy {
 public:
  using pqxx::connectionpolicy::connectionpolicy;
  // Throws pqxx::broken_connection.
  handle do_startconnect(handle orig) override;
};

}  // namespace assay
