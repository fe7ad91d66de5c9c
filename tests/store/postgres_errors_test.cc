// Messages for errors of PostgreSQL.

#include "store/postgres_errors.h"

#include "postgres_fixture.h"
#include "store/open_store.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string message_for(const std::string& raised) {
  return postgres::database_error(std::runtime_error(raised)).message;
}

TEST(PostgresErrors, SayWhatToDo) {
  EXPECT_THAT(message_for("connection failed: fe_sendauth: no password supplied\nmore"),
              HasSubstr("supplied (write a line HOST:PORT:DATABASE:USER:PASSWORD into ~/.pgpass"));
  EXPECT_THAT(message_for("FATAL:  password authentication failed for user \"a\""),
              HasSubstr("PGPASSFILE"));
  EXPECT_EQ(message_for("ERROR:  something else\nLINE 1"), "the database: ERROR:  something else");
  EXPECT_EQ(message_for("ERROR:  column \"x\" does not exist"),
            "the database: ERROR:  column \"x\" does not exist");
}

// As tables whose version was deleted, or a schema that holds only a table of this name.
TEST(PostgresErrors, TablesThatLackARowAreNamed) {
  const pqxx::unexpected_rows raised("Expected 1 row(s) of data from query, got 0.");
  EXPECT_THAT(postgres::database_error(raised).message,
              HasSubstr("lack a row; drop the schema, or name another"));
}

TEST_F(Postgres, ASchemaOrADatabaseThatIsNotThereIsSaidWithWhatToDo) {
  const auto refusal = [](const std::string& address) {
    const auto store = PostgresStore::open(address, StoreMode::create);
    return store ? "taken" : store.error().message;
  };
  std::string other = address_;
  other.replace(other.rfind("%3D") + 3, std::string::npos, "nobody_made_it");
  EXPECT_THAT(refusal(other), HasSubstr("create it with CREATE SCHEMA"));
  other.replace(other.find("/runs?"), 6, "/nodb?");
  EXPECT_THAT(refusal(other), HasSubstr("create it with createdb"));
}

// A newer assay upgrades the tables while a worker uses them.
TEST_F(Postgres, TablesThatAnotherVersionChangedMeanwhileAreReported) {
  const StorePtr store = opened();
  add(*store, 1, 3);
  {
    pqxx::connection session(address_);
    pqxx::work work(session);
    work.exec0("ALTER TABLE bundle RENAME COLUMN rank TO of_a_later_version");
    work.commit();
  }
  const auto supply = store->claim(1, [](const wire::JobT&) { return Status(); });
  ASSERT_FALSE(supply);
  EXPECT_THAT(supply.error().message, HasSubstr("continue with that version"));
}

TEST(PostgresErrors, NeverQuoteAPassword) {
  for (const char* address :
       {"postgresql://me:se%zzcret@host/runs", "postgresql://host/runs?password=se%zzcret",
        "postgresql://me:secret@host/runs?nosuch=1"}) {
    const auto store = open_store(address, StoreMode::read);
    ASSERT_FALSE(store) << address;
    EXPECT_THAT(store.error().message, Not(HasSubstr("cret"))) << address;
    EXPECT_THAT(store.error().message, HasSubstr("postgresql://USER@HOST")) << address;
    EXPECT_THAT(postgres::without_password(address), Not(HasSubstr("cret"))) << address;
  }
  const auto store = open_store("postgresql://me@host/runs?nosuch=1", StoreMode::read);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message, HasSubstr("\"nosuch\""));
}

TEST(PostgresErrors, AnAddressIsShownWithoutItsPassword) {
  EXPECT_EQ(
      postgres::without_password("postgresql://me:secret@host:5/runs?options=-csearch_path%3Dx"),
      "postgresql://me@host:5/runs?options=-csearch_path%3Dx");
  EXPECT_EQ(postgres::without_password("postgresql://host/runs?password=secret&user=me"),
            "postgresql://host/runs?password=&user=me");
  EXPECT_EQ(postgres::without_password("runs/a:b@c"), "runs/a:b@c");
}

}  // namespace
}  // namespace assay::testing
