#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <tenure/error.hpp>

#include "backends/redis/errand.hpp"
#include "backends/redis/line.hpp"
#include "backends/redis/open_errands.hpp"
#include "backends/redis/scripts.hpp"

namespace tenure::backends::redis {

/// Carries errands to one server over one connection, as many at a time as there are. When the
/// connection is lost they are sent again on the next one, in their order; so the scripts take the
/// same request twice. A server that has forgotten the scripts is told them again. Where many leave
/// together those that say so briefly go as one, see burst.lua. All on the loop's thread.
class Pipeline : public std::enable_shared_from_this<Pipeline> {
 public:
  struct Calls {
    std::function<void()> ready;  ///< Connected, also again; what was open has been sent again.
    std::function<void(const Error&)> lost;     ///< Or could not be connected.
    std::function<void()> idle;                 ///< All is answered.
    std::function<void(std::string)> doubtful;  ///< Something that people should know.
    /// Another node is asked for this, or none at the moment, in the words of this one. Not set:
    /// that is an error like any other.
    std::function<void(Errand, std::string_view)> astray{};
    /// Answers have come, told or about to be: what was put off may be asked now, and leaves with
    /// flush(). Not set: there is nothing that is not here already.
    std::function<void()> caught_up{};
  };

  /// `scripts`: those that errands name. They outlive the pipeline.
  Pipeline(boost::asio::io_context& loop, const Address& address, Calls calls,
           std::span<const ScriptText> scripts = all_scripts());

  void start();
  [[nodiscard]] bool is_ready() const noexcept { return line_->is_ready(); }
  [[nodiscard]] bool is_idle() const noexcept { return open_.empty(); }
  /// So many more have to be asked before one that may go in a burst leaves before answers come.
  [[nodiscard]] std::size_t room_after() const noexcept;
  [[nodiscard]] const std::string& where() const noexcept { return line_->where(); }

  /// Leaves with the next flush(), after what it was told before about the same key.
  void run(Errand&& errand);
  void flush();
  /// The server is there now: if we are elsewhere, we go.
  void move_to(const Endpoint& endpoint) { line_->move_to(endpoint); }
  /// Does nothing any more; all that is open, in order.
  [[nodiscard]] std::vector<Errand> retire();
  /// All that is open fails with this.
  void stop(const Error& why);

 private:
  using Id = OpenErrands::Id;
  struct Part {
    Id id = 0;
    Id release = 0;                           ///< Of the same lock, in the same step before; or 0.
    std::size_t about = 0;                    ///< The hash of its name.
    Brief::Kind kind = Brief::Kind::acquire;  ///< It may be gone when the answer comes.
  };
  using Burst = std::vector<Part>;

  void ready();
  void lost(const Error& why);
  void begin_grace(const Error& why);
  void put_off(const Error& why);
  void replied(const Reply& reply);
  void caught_up();
  void send(Id id, Errand& errand);
  void send_all();
  void forget_sent();
  void send_waiting();
  [[nodiscard]] bool may_burst_leave() const noexcept;
  [[nodiscard]] bool join_release(Burst& burst, Id id, const Errand& errand);
  void send_burst(Burst burst);
  void burst_replied(const Reply& reply);
  /// Something about the same lock is in a burst, and may have to be asked again.
  [[nodiscard]] bool has_to_wait(const Errand& errand) const;
  void answer(Id id, const Reply& reply);
  void load_scripts();
  void fail_all(const Error& why, const std::function<bool(const Errand&)>& which = {});
  [[nodiscard]] std::vector<Step> greeting();

  Calls calls_;
  const std::span<const ScriptText> scripts_;
  const std::chrono::milliseconds grace_max_;
  boost::asio::steady_timer grace_;
  bool is_in_grace_ = false;
  bool is_lost_for_good_ = true;  ///< No connection, and not only just now.
  std::shared_ptr<Line> line_;
  OpenErrands open_;
  std::vector<Id> waiting_;  ///< For the next flush.
  std::deque<Id> sent_;      ///< On this connection; or one of these:
  static constexpr Id of_script = 0;
  static constexpr Id of_burst = std::numeric_limits<Id>::max();
  std::deque<Burst> bursts_;  ///< Sent.
  /// The hashes of the locks they are about, and where in its burst each is.
  absl::flat_hash_map<std::size_t, std::size_t> bursting_;
  absl::flat_hash_set<std::size_t> held_back_;  ///< By send_waiting(), which alone uses it.
  BurstText text_;                              ///< Likewise, send_burst(),
  std::string burst_command_;                   ///< and this.
  bool has_scripts_ = true;
  bool is_stopped_ = false;
  /// Why the server refuses us; what is asked until it does not fails by it.
  std::optional<Error> refusal_;
};

}  // namespace tenure::backends::redis
