#include "backends/zookeeper/link.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include <zookeeper/zookeeper.h>

#include "sys/parking.hpp"

namespace tenure::backends::zookeeper {

/// A question under way: what the C client carries for us.
struct Link::Errand {
  Desk& desk;
  Answer answer;
  /// Where it is, once the C client has it.
  Link* link = nullptr;
  std::list<Errand>::iterator place{};

  static void deliver(const void* carried, const Reply& reply) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): it was ours before it was const.
    auto& errand = *static_cast<Errand*>(const_cast<void*>(carried));
    std::list<Errand> done;
    errand.desk.serve([&] {
      errand.answer(reply);
      errand.answer = nullptr;
      errand.link->take_back(errand, done);
    });
  }
};

namespace {

Reply reply_of(int code, const Stat* stat) {
  Reply reply{.code = code};
  if (code == ZOK && stat != nullptr) {
    reply.czxid = stat->czxid;
    reply.ephemeral_owner = stat->ephemeralOwner;
  }
  return reply;
}

std::string_view text_of(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

/// For so long the last answers are waited for.
constexpr std::chrono::milliseconds last_answers{200};

/// It writes to stderr unless somebody takes it.
void drop_log(const char* /*message*/) {}

/// For the C client, which counts in int.
int length_of(std::string_view text) {
  return static_cast<int>(text.size());
}

}  // namespace

/// What the C client calls, on its own threads.
struct Link::Reception {
  static void created(int code, const char* path, const Stat* stat, const void* carried) {
    auto reply = reply_of(code, stat);
    reply.path = text_of(path);
    Errand::deliver(carried, reply);
  }
  static void made(int code, const char* /*path*/, const void* carried) {
    Errand::deliver(carried, {.code = code});
  }
  static void done(int code, const void* carried) { Errand::deliver(carried, {.code = code}); }
  static void read(int code, const char* value, int bytes, const Stat* stat, const void* carried) {
    auto reply = reply_of(code, stat);
    if (code == ZOK && value != nullptr && bytes > 0) {
      reply.value = {value, static_cast<std::size_t>(bytes)};
    }
    Errand::deliver(carried, reply);
  }
  static void listed(int code, const String_vector* names, const void* carried) {
    Reply reply{.code = code};
    if (code == ZOK && names != nullptr) {
      reply.names.reserve(static_cast<std::size_t>(names->count));
      for (const char* const name :
           std::span(names->data, static_cast<std::size_t>(std::max(0, names->count)))) {
        reply.names.push_back(text_of(name));
      }
    }
    Errand::deliver(carried, reply);
  }

  /// Of the session. The handle may not be known to open() yet.
  static void watch_session(zhandle_t* handle, int type, int state, const char* path,
                            void* context) {
    auto& link = *static_cast<Link*>(context);
    link.handle_ = handle;
    if (type == ZOO_SESSION_EVENT) {
      link.desk_.serve([&] { link.become(state_of(state)); });
    } else {
      watch_node(handle, type, state, path, context);
    }
  }
  /// Of a node; sessions change for all watches at once, which only the one above is told.
  static void watch_node(zhandle_t* /*handle*/, int type, int /*state*/, const char* path,
                         void* context) {
    auto& link = *static_cast<Link*>(context);
    if (type == ZOO_SESSION_EVENT || path == nullptr) {
      return;
    }
    link.desk_.serve([&] {
      ++link.events_;
      const auto event = type == ZOO_DELETED_EVENT ? Event::gone
                         : type == ZOO_CHILD_EVENT ? Event::children
                                                   : Event::changed;
      link.calls_.happened(event, path);
    });
  }
  static State state_of(int state) {
    if (state == ZOO_CONNECTED_STATE) {
      return State::connected;
    }
    if (state == ZOO_EXPIRED_SESSION_STATE) {
      return State::expired;
    }
    return state == ZOO_AUTH_FAILED_STATE ? State::refused : State::connecting;
  }
};

Link::Link(Desk& desk, Chores& chores, Calls calls)
    : desk_(desk), chores_(chores), calls_(std::move(calls)) {}

// The C client forgets what it was asked when it is closed: it calls nobody and frees nothing. So
// it gets a moment to bring what is under way; what has not come by then is dropped here.
Link::~Link() {
  if (auto* const handle = handle_.load()) {
    const auto until = std::chrono::steady_clock::now() + last_answers;
    for (auto open = open_.load();
         open != 0 && state_ == State::connected && std::chrono::steady_clock::now() < until;
         open = open_.load()) {
      sys::park(open_, open, until);
    }
    zookeeper_close(handle);
  }
}

Result<void> Link::open(const Address& address, std::chrono::milliseconds timeout) {
  access_ = address.access;
  const auto most = std::chrono::milliseconds(std::numeric_limits<int>::max());
  errno = 0;
  auto* const handle = zookeeper_init2(hosts_of(address).c_str(), Reception::watch_session,
                                       static_cast<int>(std::min(timeout, most).count()), nullptr,
                                       this, ZOO_NO_LOG_CLIENTENV, drop_log);
  if (handle == nullptr) {
    const auto why = std::generic_category().message(errno);
    return fail(Errc::unavailable, hosts_of(address) + ": " + why + "; is the name right?");
  }
  handle_ = handle;
  // Else it asks for the addresses of all servers again whenever its thread wakes up: more than all
  // the rest it does. When a connection is lost it asks anyhow.
  constexpr int only_when_lost = -1;
  zoo_set_servers_resolution_delay(handle, only_when_lost);
  if (!address.identity.empty()) {
    zoo_add_auth(handle, "digest", address.identity.data(), length_of(address.identity), nullptr,
                 nullptr);
  }
  return {};
}

void Link::become(State state) {
  const bool is_final = state_ == State::expired || state_ == State::refused;
  if (state == state_ || is_final) {
    return;
  }
  state_ = state;
  calls_.changed(state);
}

std::chrono::milliseconds Link::timeout() const {
  return std::chrono::milliseconds(zoo_recv_timeout(handle_));
}

std::int64_t Link::session() const {
  return zoo_client_id(handle_)->client_id;
}

std::string Link::password() const {
  const auto* const id = zoo_client_id(handle_);
  return {id->passwd, sizeof id->passwd};
}

Link::Question::Question(Desk& desk, Answer answer) {
  errand_.push_back({.desk = desk, .answer = std::move(answer)});
}

const void* Link::Question::carried() const noexcept {
  return &errand_.front();
}

// The answer may be on its way already, but gets to the desk only when we have left it.
void Link::asked(int code, Question question) {
  ++questions_;
  auto& errand = question.errand_.front();
  if (code == ZOK) {
    // The C client has it now, and gives it back with the answer.
    errand.link = this;
    errand.place = question.errand_.begin();
    under_way_.splice(under_way_.end(), question.errand_);
    ++open_;
    return;
  }
  // Not taken. It is answered all the same, and not while somebody is in the midst of asking.
  chores_.soon([code, question = std::move(question)]() mutable {
    auto& refused = question.errand_.front();
    refused.desk.serve([&] { refused.answer({.code = code}); });
  });
}

void Link::take_back(Errand& errand, std::list<Errand>& to) {
  to.splice(to.end(), under_way_, errand.place);
  if (--open_ == 0) {
    sys::unpark(&open_);
  }
}

void Link::create_ticket(const std::string& path, std::string_view value, Answer answer) {
  Question question(desk_, std::move(answer));
  const auto* const acl = access_ == Access::world ? &ZOO_OPEN_ACL_UNSAFE : &ZOO_CREATOR_ALL_ACL;
  const int code = zoo_acreate2(handle_, path.c_str(), value.data(), length_of(value), acl,
                                ZOO_EPHEMERAL_SEQUENTIAL, Reception::created, question.carried());
  asked(code, std::move(question));
}

void Link::create_folder(const std::string& path, Folder how, Answer answer) {
  Question question(desk_, std::move(answer));
  const auto* const acl = access_ == Access::world ? &ZOO_OPEN_ACL_UNSAFE : &ZOO_CREATOR_ALL_ACL;
  const int mode = how == Folder::container ? ZOO_CONTAINER : ZOO_PERSISTENT;
  const int code =
      zoo_acreate(handle_, path.c_str(), "", 0, acl, mode, Reception::made, question.carried());
  asked(code, std::move(question));
}

void Link::remove(const std::string& path, Answer answer) {
  Question question(desk_, std::move(answer));
  constexpr int any_version = -1;
  const int code =
      zoo_adelete(handle_, path.c_str(), any_version, Reception::done, question.carried());
  asked(code, std::move(question));
}

void Link::remove_all(const std::vector<std::string>& paths, Answer answer) {
  constexpr int any_version = -1;
  std::vector<zoo_op_t> operations(paths.size());
  for (std::size_t n = 0; n < paths.size(); ++n) {
    zoo_delete_op_init(&operations[n], paths[n].c_str(), any_version);
  }
  // The C client writes there until the answer has come.
  auto results = std::make_unique<std::vector<zoo_op_result_t>>(paths.size());
  auto* const room = results->data();
  Question question(desk_, [results = std::move(results), answer = std::move(answer)](
                               const Reply& reply) mutable { answer(reply); });
  const int code = zoo_amulti(handle_, static_cast<int>(paths.size()), operations.data(), room,
                              Reception::done, question.carried());
  asked(code, std::move(question));
}

void Link::list(const std::string& path, Watch watch, Answer answer) {
  Question question(desk_, std::move(answer));
  const auto watcher = watch == Watch::yes ? Reception::watch_node : nullptr;
  const int code = zoo_awget_children(handle_, path.c_str(), watcher, this, Reception::listed,
                                      question.carried());
  asked(code, std::move(question));
}

void Link::get(const std::string& path, Watch watch, Answer answer) {
  Question question(desk_, std::move(answer));
  const auto watcher = watch == Watch::yes ? Reception::watch_node : nullptr;
  const int code =
      zoo_awget(handle_, path.c_str(), watcher, this, Reception::read, question.carried());
  asked(code, std::move(question));
}

void Link::sync(Answer answer) {
  Question question(desk_, std::move(answer));
  const int code = zoo_async(handle_, "/", Reception::made, question.carried());
  asked(code, std::move(question));
}

}  // namespace tenure::backends::zookeeper
