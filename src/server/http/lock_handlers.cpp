#include "server/http/lock_handlers.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>

#include "server/auth/access.hpp"
#include "server/config/units.hpp"
#include "server/http/body.hpp"
#include "server/http/record_json.hpp"
#include "sys/random.hpp"

namespace tenure::server::http {
namespace {

using std::chrono::milliseconds;

/// TTL of a lease if the request names none.
constexpr milliseconds ttl_default{30'000};
/// Maximum wait of one request. A longer wait repeats the request with the same request id.
constexpr milliseconds wait_max{60'000};

/// Error response for an unexpected outcome.
Response failure_response(const core::Outcome& outcome) {
  if (const auto* refused = std::get_if<core::Refused>(&outcome)) {
    // The detail names the owners in the cycle, which the client may not be allowed to read.
    const bool is_deadlock = refused->error == Errc::deadlock;
    return error_response(is_deadlock ? Error{.code = Errc::deadlock} : refused->error);
  }
  if (std::holds_alternative<core::LeaseLost>(outcome)) {
    return error_response({.code = Errc::lease_lost});
  }
  return problem(500, "Internal Server Error", "unexpected outcome from the store");
}

/// Calls `then(expected, decided)`, or replies with the error.
template <class Expected, class Then>
void respond_with(const Result<Decided>& decided, Reply& reply, Then then) {
  if (!decided) {
    reply(error_response(decided.error()));
  } else if (const auto* expected = std::get_if<Expected>(&decided->outcome)) {
    then(*expected, *decided);
  } else {
    reply(failure_response(decided->outcome));
  }
}

/// Claim of an acquire request: permits of a semaphore if it names a capacity, else a lock in the
/// given mode, by default X. Whether the numbers are within the limits is checked by core.
Result<core::Claim> claim_of(const std::optional<std::string>& mode,
                             std::optional<std::uint64_t> permits,
                             std::optional<std::uint64_t> capacity) {
  if (permits || capacity) {
    constexpr std::uint64_t most = UINT32_MAX;
    if (mode || !capacity || *capacity > most || permits.value_or(1) > most) {
      return fail(Errc::invalid_argument,
                  "a semaphore requires capacity, allows permits and excludes mode");
    }
    return core::Permits{.capacity = static_cast<std::uint32_t>(*capacity),
                         .wanted = static_cast<std::uint32_t>(permits.value_or(1))};
  }
  for (const auto known : all_lock_modes) {
    if (tenure::to_string(known) == mode.value_or("X")) {
      return core::Whole{.mode = known};
    }
  }
  return fail(Errc::invalid_argument, "mode: expected IS, IX, S, U, SIX or X");
}

/// Binds a new lease to the authenticated user, as bind_to_principal() of gRPC does.
void sign(const auth::Access& access, core::GrantLease& grant) {
  if (access.user() != nullptr) {
    grant.client = auth::qualified_client(*access.user(), grant.client);
    grant.user = access.user()->name;
    // Chosen here, so that the id of the lease is known before the grant and cannot be guessed.
    grant.id = core::LeaseId(sys::random_id());
  }
}

}  // namespace

/// Request of :acquire.
struct AcquireRequest {
  PendingAcquire::Request pending{};
  std::optional<core::GrantLease>
      lease{};  ///< Lease to grant first; nullopt: the request names one.
};

namespace {

/// Fields of an :acquire body.
struct AcquireFields {
  std::optional<std::string> mode{};
  std::optional<std::uint64_t> permits{};
  std::optional<std::uint64_t> capacity{};
  std::optional<std::uint64_t> lease{};
  std::uint64_t request = 0;  ///< 0: chosen by the server.
  std::optional<milliseconds> ttl{};
  milliseconds wait{};
  std::string owner{};
  std::string metadata{};
};

AcquireFields read_acquire(Body& body) {
  return {.mode = body.text("mode"),
          .permits = body.number("permits"),
          .capacity = body.number("capacity"),
          .lease = body.number("lease"),
          .request = body.number("request").value_or(0),
          .ttl = body.milliseconds("ttl_ms"),
          .wait = body.milliseconds("wait_ms").value_or(milliseconds(0)),
          .owner = body.text("owner").value_or(""),
          .metadata = body.text("metadata").value_or("")};
}

Result<AcquireRequest> acquire_request_from(const Request& request) {
  const auto fields = read_body(request.body, read_acquire);
  if (!fields) {
    return std::unexpected(fields.error());
  }
  auto claim = claim_of(fields->mode, fields->permits, fields->capacity);
  if (!claim) {
    return std::unexpected(claim.error());
  }
  if (fields->wait > wait_max) {
    return fail(Errc::invalid_argument, "wait_ms: at most 60000");
  }
  // A TTL belongs to the lease; accepting it here would suggest that it applies to one lock.
  if (fields->lease && fields->ttl) {
    return fail(Errc::invalid_argument, "ttl_ms: excluded by lease, which has a TTL");
  }
  // A request id makes a retry idempotent per lease. Each request without a lease gets a new one,
  // so its retry would acquire a second time.
  if (!fields->lease && fields->request != 0) {
    return fail(Errc::invalid_argument, "request: requires a lease from POST /v1/leases");
  }
  AcquireRequest spec;
  spec.pending = {
      .acquire = {.lease = core::LeaseId(fields->lease.value_or(0)),
                  .request =
                      core::RequestId(fields->request != 0 ? fields->request : sys::random_id()),
                  .items = {core::Item{.name = request.path_parameter, .claim = *std::move(claim)}},
                  .queue = fields->wait.count() > 0 ? core::Queue::wait : core::Queue::skip,
                  .owner = fields->owner,
                  .metadata = fields->metadata},
      .timeout = fields->wait,
      .has_client_request_id = fields->request != 0};
  if (!fields->lease) {
    const auto& address = request.client.address;
    spec.lease = core::GrantLease{.ttl = fields->ttl.value_or(ttl_default),
                                  .client = fields->owner.empty() ? address : fields->owner,
                                  .address = address};
    sign(request.access, *spec.lease);
  }
  return spec;
}

/// Hold that :release or :extend refers to.
struct HoldKey {
  core::LeaseId lease{};
  core::FencingToken token{};
};

HoldKey read_key(Body& body) {
  return {.lease = core::LeaseId(body.required_number("lease")),
          .token = core::FencingToken(body.required_number("token"))};
}

/// Hold of `name` with this lease and token; null: none.
/// The name is compared too: the client was authorised for this name, not for the token.
const core::Hold* find_hold(const View& view, const HoldKey& key, const std::string& name) {
  const auto* hold = view.state.locks.find(key.token);
  if (hold == nullptr || hold->lease != key.lease) {
    return nullptr;
  }
  const core::Resource resource{.name = name};
  const bool is_here =
      std::ranges::any_of(hold->items, [&](const auto& item) { return item.is_at(resource); });
  return is_here ? hold : nullptr;
}

Response not_held() {
  return error_response(
      {.code = Errc::not_held, .detail = "the lease does not hold this lock with this token"});
}

/// Renewal with the present TTL, or a change of the TTL, which also renews.
core::Command renewal(core::LeaseId lease, std::optional<milliseconds> ttl) {
  if (ttl) {
    return core::SetTtl{.lease = lease, .ttl = *ttl};
  }
  return core::RenewLeases{.leases = {lease}};
}

}  // namespace

/// One :acquire, from the lease grant to the response. Store thread only.
///
/// The callbacks of the store hold a shared_ptr; the disconnect hook holds a weak_ptr, because it
/// belongs to the connection and may outlive the attempt.
class LockHandlers::Attempt : public std::enable_shared_from_this<LockHandlers::Attempt> {
 public:
  Attempt(LockHandlers& handlers, Requester requester, AcquireRequest spec, Reply reply)
      : lock_handlers_(handlers),
        requester_(std::move(requester)),
        request_spec_(std::move(spec)),
        reply_(std::move(reply)) {}

  /// Grants the implicit lease first if the request names none.
  void begin() {
    if (!request_spec_.lease) {
      if (lock_handlers_.is_foreign(requester_, request_spec_.pending.acquire.lease)) {
        reply_(error_response({.code = Errc::lease_lost}));
        return;
      }
      acquire();
      return;
    }
    lock_handlers_.store_.propose(
        *request_spec_.lease, [self = shared_from_this()](const Result<Decided>& decided) {
          respond_with<core::LeaseGranted>(decided, self->reply_,
                                           [&](const core::LeaseGranted& granted, const Decided&) {
                                             auto& wanted = self->request_spec_.pending.acquire;
                                             wanted.lease = granted.id;
                                             // Marks the lease as implicit; see LockHandlers.
                                             wanted.request = core::RequestId(granted.id.get());
                                             self->acquire();
                                           });
        });
  }

  /// Called when the client has disconnected.
  void on_disconnect() {
    is_disconnected_ = true;
    if (const auto here = acquisition_.lock()) {
      here->on_disconnect();
    }
  }

 private:
  /// REQUIRES: the lease of the request is known.
  void acquire() {
    lease_ = request_spec_.pending.acquire.lease;
    request_ = request_spec_.pending.acquire.request;
    item_ = request_spec_.pending.acquire.items.front();
    acquisition_ = PendingAcquire::begin(
        lock_handlers_.acquire_context(), std::move(request_spec_.pending),
        [self = shared_from_this()](const PendingAcquire::Completion& end) { self->answer(end); });
    // The client disconnected while the lease was being granted.
    if (is_disconnected_) {
      on_disconnect();
    }
  }

  /// Sends the response and ends the implicit lease unless the client now holds the lock.
  void answer(const PendingAcquire::Completion& end) {
    const auto* granted = end.outcome ? std::get_if<core::Granted>(&*end.outcome) : nullptr;
    // The implicit lease is unknown to the client, so revoke it. A stopping server lets it expire:
    // the client may be retrying at the next leader. Without the revocation, the lock of a
    // disconnected client would stay held for the whole TTL.
    if (request_spec_.lease && (granted == nullptr || is_disconnected_) &&
        !lock_handlers_.is_stopping_) {
      lock_handlers_.store_.propose(core::RevokeLease{.lease = lease_},
                                    [](const Result<Decided>&) {});
    }
    if (!end.outcome) {
      reply_(error_response(end.outcome.error()));
    } else if (granted == nullptr) {
      reply_(failure_response(*end.outcome));
    } else {
      reply_(json_object([&](sys::JsonWriter& out) {
        out.bytes("name", item_.name.view());
        write_claim(out, item_.claim);
        out.field("token", granted->token);
        out.field("lease", lease_);
        out.field("request", request_);
        if (request_spec_.lease) {
          out.field("ttl_ms", in_ms(request_spec_.lease->ttl));
        }
        out.field("revision", end.revision);
      }));
    }
  }

  LockHandlers& lock_handlers_;
  const Requester requester_;
  AcquireRequest request_spec_;
  Reply reply_;
  /// Copies of fields of the request, which acquire() moves away.
  core::LeaseId lease_{};
  core::RequestId request_{};
  core::Item item_{};
  /// Wait to notify of a disconnect; it keeps itself alive.
  std::weak_ptr<PendingAcquire> acquisition_;
  bool is_disconnected_ = false;
};

LockHandlers::LockHandlers(Store& store, boost::asio::any_io_executor executor,
                           auth::Authorizer* authorizer)
    : store_(store), executor_(std::move(executor)), authorizer_(authorizer) {
  // Grants of waiting requests arrive as notices.
  store_.listen(waiters_);
}

bool LockHandlers::is_foreign(const Requester& requester, core::LeaseId id) const {
  // An unknown lease is not foreign: the command itself then fails with LeaseLost. A foreign one
  // gets the same reply, so a client cannot probe which leases exist.
  const auto* lease = store_.state().leases.find(id);
  if (authorizer_ == nullptr || lease == nullptr) {
    return false;
  }
  const auto& access = requester.access;
  const auto* user = access.user();
  if (access.may_globally(auth::Verb::admin) ||
      (user != nullptr && auth::is_owned_by(*user, lease->client.view()))) {
    return false;
  }
  authorizer_->record_denial({.principal = user == nullptr ? requester.address : user->name,
                              .verb = "lease",
                              .name = std::to_string(id.get()),
                              .address = requester.address});
  return true;
}

void LockHandlers::propose_for(core::LeaseId lease, const Request& request, core::Command command,
                               Store::Decision decided) {
  // The ownership check and propose() run in one handler of the store's thread, so the lease cannot
  // change its owner between them.
  boost::asio::post(store_.loop(),
                    [this, lease, requester = requester_of(request), command = std::move(command),
                     decided = std::move(decided)]() mutable {
                      if (is_foreign(requester, lease)) {
                        decided(Decided{.outcome = core::LeaseLost{lease}});
                      } else {
                        store_.propose(std::move(command), std::move(decided));
                      }
                    });
}

void LockHandlers::acquire(const Request& request, Reply reply) {
  auto spec = acquire_request_from(request);
  if (!spec) {
    reply(error_response(spec.error()));
    return;
  }
  const auto wait = spec->pending.timeout.value_or(milliseconds(0));
  const auto attempt = std::make_shared<Attempt>(*this, requester_of(request), *std::move(spec),
                                                 on_http_thread(std::move(reply)));
  if (request.disconnect_hook) {
    // The connection extends its response deadline by this time.
    request.disconnect_hook->wait_max = wait;
    request.disconnect_hook->on_disconnect = [&loop = store_.loop(),
                                              weak = std::weak_ptr(attempt)] {
      boost::asio::post(loop, [weak] {
        if (const auto here = weak.lock()) {
          here->on_disconnect();
        }
      });
    };
  }
  boost::asio::post(store_.loop(), [attempt] { attempt->begin(); });
}

void LockHandlers::release(const Request& request, Reply reply) {
  const auto key = read_body(request.body, read_key);
  if (!key) {
    reply(error_response(key.error()));
    return;
  }
  // The hold is read first, because its request id shows whether the lease is implicit, and because
  // the name must match. The read is linearizable: a grant acknowledged before is visible.
  auto then = [this, key = *key, name = request.path_parameter, requester = requester_of(request),
               reply = on_http_thread(std::move(reply))](const Result<View>& view) mutable {
    const auto* hold = view ? find_hold(*view, key, name) : nullptr;
    if (hold == nullptr || is_foreign(requester, key.lease)) {
      reply(view ? not_held() : error_response(view.error()));
      return;
    }
    const bool ends_lease = hold->request.get() == key.lease.get();
    auto answer = [this, key, ends_lease,
                   reply = std::move(reply)](const Result<Decided>& decided) mutable {
      respond_with<core::Released>(
          decided, reply, [&](const core::Released& released, const Decided& how) {
            // A reentrant hold needs one release per acquisition; the lease lives until the last
            // one.
            const bool is_finished = released.count_left == 0;
            if (ends_lease && is_finished) {
              // Result ignored: if the proposal is lost, the empty lease expires at its TTL.
              store_.propose(core::RevokeLease{.lease = key.lease}, [](const Result<Decided>&) {});
            }
            reply(json_object([&](sys::JsonWriter& out) {
              out.field("count_left", released.count_left);
              out.field("lease_ended", ends_lease && is_finished);
              out.field("revision", how.revision);
            }));
          });
    };
    store_.propose(core::Release{.lease = key.lease, .what = key.token}, std::move(answer));
  };
  store_.read(std::move(then));
}

void LockHandlers::extend(const Request& request, Reply reply) {
  const auto asked = read_body(request.body, [](Body& body) {
    return std::pair(read_key(body), body.milliseconds("ttl_ms"));
  });
  if (!asked) {
    reply(error_response(asked.error()));
    return;
  }
  const auto& [whose, wanted] = *asked;
  auto renewed = [this, key = whose, name = request.path_parameter,
                  reply =
                      on_http_thread(std::move(reply))](const Result<Decided>& decided) mutable {
    const auto* answers = decided ? std::get_if<core::Renewed>(&decided->outcome) : nullptr;
    if (answers == nullptr) {
      reply(decided ? failure_response(decided->outcome) : error_response(decided.error()));
      return;
    }
    // A renewal reports each lease separately; one without a TTL does not exist any more.
    const auto left = answers->answers.front().ttl;
    if (!left) {
      reply(error_response({.code = Errc::lease_lost}));
      return;
    }
    // Checked after the renewal: a hold found now lasts until the new deadline.
    store_.read([key, name = std::move(name), ttl = *left,
                 reply = std::move(reply)](const Result<View>& view) mutable {
      if (!view || find_hold(*view, key, name) == nullptr) {
        reply(view ? not_held() : error_response(view.error()));
        return;
      }
      reply(json_object([&](sys::JsonWriter& out) {
        out.field("token", key.token);
        out.field("lease", key.lease);
        out.field("ttl_ms", in_ms(ttl));
        out.field("revision", view->state.revision);
      }));
    });
  };
  propose_for(whose.lease, request, renewal(whose.lease, wanted), std::move(renewed));
}

void LockHandlers::grant_lease(const Request& request, Reply reply) {
  const auto& address = request.client.address;
  // Without a client name the address identifies the lease in listings.
  auto grant = read_body(request.body, [&](Body& body) {
    return core::GrantLease{.ttl = body.milliseconds("ttl_ms").value_or(ttl_default),
                            .client = body.text("client").value_or(address),
                            .address = address};
  });
  if (!grant) {
    reply(error_response(grant.error()));
    return;
  }
  sign(request.access, *grant);
  store_.propose(*std::move(grant), [reply = on_http_thread(std::move(reply))](
                                        const Result<Decided>& decided) mutable {
    respond_with<core::LeaseGranted>(decided, reply,
                                     [&](const core::LeaseGranted& granted, const Decided& how) {
                                       reply(json_object([&](sys::JsonWriter& out) {
                                         out.field("lease", granted.id);
                                         out.field("ttl_ms", in_ms(granted.ttl));
                                         out.field("revision", how.revision);
                                       }));
                                     });
  });
}

void LockHandlers::renew_lease(const Request& request, Reply reply) {
  const auto number = parse_count(request.path_parameter);
  const auto ttl = read_body(request.body, [](Body& body) { return body.milliseconds("ttl_ms"); });
  if (!number || !ttl) {
    reply(error_response(number ? ttl.error() : number.error()));
    return;
  }
  const core::LeaseId lease(*number);
  propose_for(lease, request, renewal(lease, *ttl),
              [reply = on_http_thread(std::move(reply))](const Result<Decided>& decided) mutable {
                respond_with<core::Renewed>(decided, reply,
                                            [&](const core::Renewed& renewed, const Decided& how) {
                                              const auto& answer = renewed.answers.front();
                                              if (!answer.ttl) {
                                                reply(error_response({.code = Errc::lease_lost}));
                                                return;
                                              }
                                              reply(json_object([&](sys::JsonWriter& out) {
                                                out.field("lease", answer.id);
                                                out.field("ttl_ms", in_ms(*answer.ttl));
                                                out.field("revision", how.revision);
                                              }));
                                            });
              });
}

void LockHandlers::revoke_lease(const Request& request, Reply reply) {
  const auto number = parse_count(request.path_parameter);
  if (!number) {
    reply(error_response(number.error()));
    return;
  }
  const core::LeaseId lease(*number);
  propose_for(
      lease, request, core::RevokeLease{.lease = lease},
      [reply = on_http_thread(std::move(reply))](const Result<Decided>& decided) mutable {
        respond_with<core::Done>(decided, reply, [&](const core::Done&, const Decided& how) {
          reply(json_object([&](sys::JsonWriter& out) { out.field("revision", how.revision); }));
        });
      });
}

}  // namespace tenure::server::http
