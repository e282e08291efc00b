#include "backends/zookeeper/connection.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include <zookeeper/zookeeper.h>

#include "sys/parking.hpp"

namespace tenure::backends::zookeeper {

/// Request in flight; the C client carries a pointer to it as context.
struct Connection::PendingCall {
  Strand& strand;
  ReplyCallback on_reply;
  /// Owner and position, set once the C client has accepted the request.
  Connection* connection = nullptr;
  std::list<PendingCall>::iterator position{};

  static void deliver(const void* context, const Reply& reply) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): the object is not const.
    auto& call = *static_cast<PendingCall*>(const_cast<void*>(context));
    // Receives the finished call, which is destroyed after the strand is unlocked.
    std::list<PendingCall> done;
    call.strand.dispatch([&] {
      call.on_reply(reply);
      call.on_reply = nullptr;
      call.connection->complete(call, done);
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

/// Time for requests in flight to complete before the session is closed.
constexpr std::chrono::milliseconds close_timeout{200};

/// Discards log messages, which the C client writes to stderr by default.
void drop_log(const char* /*message*/) {}

/// Length as int, for the C client.
int length_of(std::string_view text) {
  return static_cast<int>(text.size());
}

}  // namespace

/// Callbacks of the C client, which run on its threads.
struct Connection::CallbackAdapter {
  static void created(int code, const char* path, const Stat* stat, const void* context) {
    auto reply = reply_of(code, stat);
    reply.path = text_of(path);
    PendingCall::deliver(context, reply);
  }
  static void made(int code, const char* /*path*/, const void* context) {
    PendingCall::deliver(context, {.code = code});
  }
  static void done(int code, const void* context) { PendingCall::deliver(context, {.code = code}); }
  static void read(int code, const char* value, int bytes, const Stat* stat, const void* context) {
    auto reply = reply_of(code, stat);
    if (code == ZOK && value != nullptr && bytes > 0) {
      reply.value = {value, static_cast<std::size_t>(bytes)};
    }
    PendingCall::deliver(context, reply);
  }
  static void listed(int code, const String_vector* names, const void* context) {
    Reply reply{.code = code};
    if (code == ZOK && names != nullptr) {
      reply.names.reserve(static_cast<std::size_t>(names->count));
      for (const char* const name :
           std::span(names->data, static_cast<std::size_t>(std::max(0, names->count)))) {
        reply.names.push_back(text_of(name));
      }
    }
    PendingCall::deliver(context, reply);
  }

  /// Session watcher. open() may not have stored the handle yet.
  static void watch_session(zhandle_t* handle, int type, int state, const char* path,
                            void* context) {
    auto& connection = *static_cast<Connection*>(context);
    connection.handle_ = handle;
    if (type == ZOO_SESSION_EVENT) {
      connection.strand_.dispatch([&] { connection.set_state(state_of(state)); });
    } else {
      watch_node(handle, type, state, path, context);
    }
  }
  /// Node watcher. Session events reach every watcher; only the session watcher handles them.
  static void watch_node(zhandle_t* /*handle*/, int type, int /*state*/, const char* path,
                         void* context) {
    auto& connection = *static_cast<Connection*>(context);
    if (type == ZOO_SESSION_EVENT || path == nullptr) {
      return;
    }
    connection.strand_.dispatch([&] {
      ++connection.events_;
      const auto event = type == ZOO_DELETED_EVENT ? Event::deleted
                         : type == ZOO_CHILD_EVENT ? Event::children
                                                   : Event::changed;
      connection.callbacks_.node_event(event, path);
    });
  }
  static State state_of(int state) {
    if (state == ZOO_CONNECTED_STATE) {
      return State::connected;
    }
    if (state == ZOO_EXPIRED_SESSION_STATE) {
      return State::expired;
    }
    return state == ZOO_AUTH_FAILED_STATE ? State::auth_failed : State::connecting;
  }
};

Connection::Connection(Strand& strand, TimerThread& timers, Callbacks calls)
    : strand_(strand), timers_(timers), callbacks_(std::move(calls)) {}

// Closing the C client neither completes nor frees pending requests. The destructor gives them a
// moment to complete and then drops the rest.
Connection::~Connection() {
  if (auto* const handle = handle_.load()) {
    const auto until = std::chrono::steady_clock::now() + close_timeout;
    for (auto open = pending_count_.load();
         open != 0 && state_ == State::connected && std::chrono::steady_clock::now() < until;
         open = pending_count_.load()) {
      sys::park(pending_count_, open, until);
    }
    zookeeper_close(handle);
  }
}

Result<void> Connection::open(const Address& address, std::chrono::milliseconds timeout) {
  access_ = address.access;
  const auto most = std::chrono::milliseconds(std::numeric_limits<int>::max());
  errno = 0;
  auto* const handle = zookeeper_init2(hosts_of(address).c_str(), CallbackAdapter::watch_session,
                                       static_cast<int>(std::min(timeout, most).count()), nullptr,
                                       this, ZOO_NO_LOG_CLIENTENV, drop_log);
  if (handle == nullptr) {
    const auto why = std::generic_category().message(errno);
    return fail(Errc::unavailable, hosts_of(address) + ": " + why + "; is the name right?");
  }
  handle_ = handle;
  // By default the C client resolves all host names at every wake-up of its thread, which costs
  // more than its other work. After a connection loss it resolves them anyway.
  constexpr int only_when_lost = -1;
  zoo_set_servers_resolution_delay(handle, only_when_lost);
  if (!address.identity.empty()) {
    zoo_add_auth(handle, "digest", address.identity.data(), length_of(address.identity), nullptr,
                 nullptr);
  }
  return {};
}

void Connection::set_state(State state) {
  // The C client may report further states after the end of a session.
  const bool is_final = state_ == State::expired || state_ == State::auth_failed;
  if (state == state_ || is_final) {
    return;
  }
  state_ = state;
  callbacks_.changed(state);
}

std::chrono::milliseconds Connection::timeout() const {
  return std::chrono::milliseconds(zoo_recv_timeout(handle_));
}

std::int64_t Connection::session() const {
  return zoo_client_id(handle_)->client_id;
}

std::string Connection::password() const {
  const auto* const id = zoo_client_id(handle_);
  return {id->passwd, sizeof id->passwd};
}

// The context is a list node: its address stays valid when it is spliced into the pending list.
Connection::OutgoingCall::OutgoingCall(Strand& strand, ReplyCallback on_reply) {
  call_.push_back({.strand = strand, .on_reply = std::move(on_reply)});
}

const void* Connection::OutgoingCall::context() const noexcept {
  return &call_.front();
}

// The reply may arrive at once, but waits until this call has left the strand.
void Connection::submitted(int code, OutgoingCall outgoing) {
  ++requests_;
  auto& call = outgoing.call_.front();
  if (code == ZOK) {
    // The C client owns the context now and returns it with the reply.
    call.connection = this;
    call.position = outgoing.call_.begin();
    pending_.splice(pending_.end(), outgoing.call_);
    ++pending_count_;
    return;
  }
  // Rejected by the C client. Fail it later, so that no reply arrives within the request.
  timers_.call_soon([code, outgoing = std::move(outgoing)]() mutable {
    auto& rejected = outgoing.call_.front();
    rejected.strand.dispatch([&] { rejected.on_reply({.code = code}); });
  });
}

void Connection::complete(PendingCall& call, std::list<PendingCall>& to) {
  to.splice(to.end(), pending_, call.position);
  if (--pending_count_ == 0) {
    sys::unpark(&pending_count_);
  }
}

void Connection::create_ticket(const std::string& path, std::string_view value,
                               ReplyCallback on_reply) {
  OutgoingCall call(strand_, std::move(on_reply));
  const auto* const acl = access_ == Access::world ? &ZOO_OPEN_ACL_UNSAFE : &ZOO_CREATOR_ALL_ACL;
  const int code = zoo_acreate2(handle_, path.c_str(), value.data(), length_of(value), acl,
                                ZOO_EPHEMERAL_SEQUENTIAL, CallbackAdapter::created, call.context());
  submitted(code, std::move(call));
}

void Connection::create_folder(const std::string& path, FolderKind kind, ReplyCallback on_reply) {
  OutgoingCall call(strand_, std::move(on_reply));
  const auto* const acl = access_ == Access::world ? &ZOO_OPEN_ACL_UNSAFE : &ZOO_CREATOR_ALL_ACL;
  const int mode = kind == FolderKind::container ? ZOO_CONTAINER : ZOO_PERSISTENT;
  const int code =
      zoo_acreate(handle_, path.c_str(), "", 0, acl, mode, CallbackAdapter::made, call.context());
  submitted(code, std::move(call));
}

void Connection::remove(const std::string& path, ReplyCallback on_reply) {
  OutgoingCall call(strand_, std::move(on_reply));
  constexpr int any_version = -1;
  const int code =
      zoo_adelete(handle_, path.c_str(), any_version, CallbackAdapter::done, call.context());
  submitted(code, std::move(call));
}

void Connection::remove_all(const std::vector<std::string>& paths, ReplyCallback on_reply) {
  constexpr int any_version = -1;
  std::vector<zoo_op_t> operations(paths.size());
  for (std::size_t n = 0; n < paths.size(); ++n) {
    zoo_delete_op_init(&operations[n], paths[n].c_str(), any_version);
  }
  // The C client writes to the buffer until the reply arrives.
  auto results = std::make_unique<std::vector<zoo_op_result_t>>(paths.size());
  auto* const result_buffer = results->data();
  OutgoingCall call(strand_, [results = std::move(results), on_reply = std::move(on_reply)](
                                 const Reply& reply) mutable { on_reply(reply); });
  const int code = zoo_amulti(handle_, static_cast<int>(paths.size()), operations.data(),
                              result_buffer, CallbackAdapter::done, call.context());
  submitted(code, std::move(call));
}

void Connection::list(const std::string& path, Watch watch, ReplyCallback on_reply) {
  OutgoingCall call(strand_, std::move(on_reply));
  const auto watcher = watch == Watch::yes ? CallbackAdapter::watch_node : nullptr;
  const int code = zoo_awget_children(handle_, path.c_str(), watcher, this, CallbackAdapter::listed,
                                      call.context());
  submitted(code, std::move(call));
}

void Connection::get(const std::string& path, Watch watch, ReplyCallback on_reply) {
  OutgoingCall call(strand_, std::move(on_reply));
  const auto watcher = watch == Watch::yes ? CallbackAdapter::watch_node : nullptr;
  const int code =
      zoo_awget(handle_, path.c_str(), watcher, this, CallbackAdapter::read, call.context());
  submitted(code, std::move(call));
}

void Connection::sync(ReplyCallback on_reply) {
  OutgoingCall call(strand_, std::move(on_reply));
  const int code = zoo_async(handle_, "/", CallbackAdapter::made, call.context());
  submitted(code, std::move(call));
}

}  // namespace tenure::backends::zookeeper
