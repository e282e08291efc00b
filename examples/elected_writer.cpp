// A worker that runs on every machine and works on one: it campaigns, and while it is the leader it
// takes jobs from an SQLite database. Every write passes the token of the leadership to a fence in
// the same transaction, so a former leader cannot finish a job after its successor has started.
//   example_elected_writer [URL]        default memory://cluster; in production tenure://host:7420

#include <chrono>
#include <filesystem>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include <sqlite3.h>

#include <tenure/fence_sqlite.hpp>
#include <tenure/tenure.hpp>

#include "check.hpp"

using namespace std::chrono_literals;
using tenure::Errc;
using tenure::FenceResult;

namespace {

constexpr const char* role = "jobs/leader";
constexpr const char* resource = "jobs";

/// The job database. Link tenure::fence_sqlite.
class Jobs {
 public:
  explicit Jobs(const std::filesystem::path& file) : connection_(open(file)) {
    execute("CREATE TABLE IF NOT EXISTS jobs (id INTEGER PRIMARY KEY, done_by TEXT)");
    tenure::SqliteFence::create_table(*connection_).or_throw();
    fence_.emplace(tenure::SqliteFence::on(*connection_).or_throw());
  }

  void add(int count) {
    for (int job = 0; job < count; ++job) {
      execute("INSERT INTO jobs (done_by) VALUES (NULL)");
    }
  }

  /// Marks the next job as done, in one transaction with the fence check.
  [[nodiscard]] FenceResult finish_next(const std::string& who, tenure::FencingToken token) {
    execute("BEGIN IMMEDIATE");
    if (auto admitted = fence_->admit(resource, token); !admitted) {
      execute("ROLLBACK");
      return admitted;
    }
    execute("UPDATE jobs SET done_by = '" + who +
            "' WHERE id = (SELECT min(id) FROM jobs WHERE done_by IS NULL)");
    execute("COMMIT");
    return {};
  }

  /// Returns the number of jobs done by `who`; if empty, the number of open jobs.
  [[nodiscard]] int count(const std::string& who = {}) {
    const std::string where = who.empty() ? "IS NULL" : "= '" + who + "'";
    return number("SELECT count(*) FROM jobs WHERE done_by " + where);
  }

 private:
  struct Close {
    void operator()(sqlite3* connection) const noexcept { sqlite3_close_v2(connection); }
  };

  static sqlite3* open(const std::filesystem::path& file) {
    sqlite3* connection = nullptr;
    check_quietly(sqlite3_open(file.c_str(), &connection) == SQLITE_OK, "the database opens");
    sqlite3_busy_timeout(connection, 20'000);
    return connection;
  }
  static void check_quietly(bool holds, std::string_view line) {
    if (!holds) {
      check(false, line);
    }
  }
  void execute(const std::string& text) {
    check_quietly(
        sqlite3_exec(connection_.get(), text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK,
        text + ": " + sqlite3_errmsg(connection_.get()));
  }
  int number(const std::string& text) {
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(connection_.get(), text.c_str(), -1, &statement, nullptr);
    const int found = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int(statement, 0) : -1;
    sqlite3_finalize(statement);
    return found;
  }

  std::unique_ptr<sqlite3, Close> connection_;
  std::optional<tenure::SqliteFence> fence_;  // ends before the connection
};

/// Runs on every machine.
class Worker {
 public:
  Worker(const std::string& url, std::string name, const std::filesystem::path& file)
      : client_(tenure::connect(url, {.owner = name}).or_throw()),
        name_(std::move(name)),
        jobs_(file) {}

  /// Waits for leadership and works until no job is left, `end` fires or the leadership is lost.
  /// `in_the_middle` is called in each job, before the write.
  [[nodiscard]] FenceResult lead(const std::stop_token& end, tenure::LockOptions options,
                                 const std::function<void()>& in_the_middle) {
    auto leadership = client_.election(role, std::move(options)).campaign(name_, end);
    if (!leadership) {
      return std::unexpected(tenure::FenceError{.error = std::move(leadership).error()});
    }
    while (jobs_.count() > 0 && !end.stop_requested()) {
      in_the_middle();
      // No check of leadership->lost() here: a pause may follow any check. The fence decides.
      if (auto written = jobs_.finish_next(name_, leadership->token()); !written) {
        return written;
      }
    }
    static_cast<void>(tenure::Election::resign(*leadership));
    return {};
  }

  [[nodiscard]] const tenure::Client& client() const { return client_; }

 private:
  tenure::Client client_;
  std::string name_;
  Jobs jobs_;
};

void play(const std::string& url, const std::filesystem::path& file) {
  Jobs jobs(file);
  jobs.add(10);
  Worker one(url, "one", file);
  Worker two(url, "two", file);
  const auto lease = one.client().lease({.ttl = 10s}).or_throw();
  std::latch is_stuck(1);
  std::latch two_is_done(1);
  int steps = 0;
  FenceResult end_of_one;

  std::jthread first([&](const std::stop_token& end) {
    end_of_one = one.lead(end, {.lease = lease}, [&] {
      if (++steps == 4) {  // as a machine that stands still in the middle of its fourth job
        is_stuck.count_down();
        two_is_done.wait();
      }
    });
  });
  is_stuck.wait();
  check(jobs.count("one") == 3, "one leads and is suspended after three jobs of ten");
  check(lease.revoke().has_value(), "its lease ends");

  const auto end_of_two = two.lead({}, {}, [] {});
  check(end_of_two.has_value() && jobs.count("two") == 7, "two leads and does the other seven");

  jobs.add(1);
  two_is_done.count_down();
  first.join();
  check(!end_of_one && end_of_one.error().reason == tenure::FenceError::Reason::stale,
        "one resumes and writes: rejected, its token is stale");
  check(jobs.count("one") == 3 && jobs.count() == 1, "no job was done by both");
}

}  // namespace

int main(int count, char** words) {
  const std::string url = count > 1 ? words[1] : "memory://cluster";
  const auto folder = std::filesystem::temp_directory_path() /
                      ("elected_writer." + std::to_string(std::random_device{}()));
  std::filesystem::create_directory(folder);
  play(url, folder / "jobs.db");
  std::filesystem::remove_all(folder);
}
