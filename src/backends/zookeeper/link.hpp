#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "backends/zookeeper/address.hpp"
#include "backends/zookeeper/chores.hpp"
#include "backends/zookeeper/desk.hpp"

struct _zhandle;

namespace tenure::backends::zookeeper {

/// What a server answered. Valid for as long as the callback runs.
struct Reply {
  int code = 0;             ///< One of the C client's: ZOK, ZNONODE, …
  std::string_view path{};  ///< Of what was created.
  std::string_view value{};
  std::int64_t czxid = 0;            ///< Which transaction created it.
  std::int64_t ephemeral_owner = 0;  ///< The session that it ends with.
  std::vector<std::string_view> names{};
};
using Answer = std::move_only_function<void(const Reply&)>;

/// A session at ZooKeeper by its C client, and what can be asked on it. Knows nothing of locks.
///
/// The C client has two threads of its own; what they bring is dealt with at the desk, at once: no
/// call made there may wait or run a user's code. Everything below is called at the desk, unless it
/// says otherwise. Every answer comes once, never before the question has returned; or not at
/// all, if the link ends before.
class Link {
 public:
  enum class State : std::uint8_t {
    connecting,  ///< Not yet, or not any more: the session may live on.
    connected,
    expired,  ///< The session has ended. There is no way back.
    refused,  ///< They do not take who we say we are. Likewise.
  };
  enum class Event : std::uint8_t {
    gone,      ///< The node is not there any more.
    changed,   ///< Or was made: in any case the watch is used up.
    children,  ///< Of a list().
  };
  struct Calls {
    std::function<void(State)> changed{};
    std::function<void(Event, std::string_view path)> happened{};
  };
  enum class Watch : std::uint8_t { no, yes };
  /// How a folder is made.
  enum class Folder : std::uint8_t {
    container,   ///< Goes by itself when it has been empty for a while.
    persistent,  ///< For servers that do not know those.
  };

  Link(Desk& desk, Chores& chores, Calls calls);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  /// Ends the session, so that its nodes go at once, if a server can be told. Waits for the threads
  /// of the C client, and for a moment for what is under way. Not at the desk.
  ~Link();

  /// Begins to connect, and never gives up. May ask for addresses: not at the desk.
  [[nodiscard]] Result<void> open(const Address& address, std::chrono::milliseconds timeout);

  [[nodiscard]] State state() const noexcept { return state_; }
  /// What the servers made of the timeout. REQUIRES: connected.
  [[nodiscard]] std::chrono::milliseconds timeout() const;
  /// The session, which nodes name as their owner. REQUIRES: connected once.
  [[nodiscard]] std::int64_t session() const;
  /// What it takes to take the session over: 16 bytes.
  [[nodiscard]] std::string password() const;
  /// How many questions were asked, and events told, so far.
  [[nodiscard]] std::uint64_t questions() const noexcept { return questions_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }

  /// An ephemeral node whose name ends with the next number of its folder.
  void create_ticket(const std::string& path, std::string_view value, Answer answer);
  void create_folder(const std::string& path, Folder how, Answer answer);
  void remove(const std::string& path, Answer answer);
  /// All of them or none; refused with the code of the first that was not deleted.
  void remove_all(const std::vector<std::string>& paths, Answer answer);
  void list(const std::string& path, Watch watch, Answer answer);
  /// What it says and who made it. A watch is only left behind if it is there.
  void get(const std::string& path, Watch watch, Answer answer);
  /// To the leader and back; what it knew then, our server knows at the answer.
  void sync(Answer answer);

 private:
  struct Errand;
  struct Reception;
  /// An errand that nobody has taken yet.
  class Question {
   public:
    Question(Desk& desk, Answer answer);
    [[nodiscard]] const void* carried() const noexcept;

   private:
    friend class Link;
    std::list<Errand> errand_;
  };

  void asked(int code, Question question);
  void take_back(Errand& errand, std::list<Errand>& to);
  void become(State state);

  Desk& desk_;
  Chores& chores_;
  const Calls calls_;
  Access access_ = Access::world;
  std::atomic<_zhandle*> handle_ = nullptr;
  std::atomic<State> state_ = State::connecting;
  std::list<Errand> under_way_;          ///< What the C client has.
  std::atomic<std::uint32_t> open_ = 0;  ///< How many that are, for whoever waits.
  std::uint64_t questions_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace tenure::backends::zookeeper
