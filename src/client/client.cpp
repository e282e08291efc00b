#include <utility>

#include <tenure/client/client.hpp>

#include "backends/backend.hpp"
#include "client/completion.hpp"
#include "client/factory.hpp"
#include "client/lock_spec.hpp"
#include "client/session.hpp"
#include "client/shared_lease.hpp"
#include "client/views.hpp"
#include "sys/random.hpp"

namespace tenure {
namespace {

std::vector<backends::Item> one(std::string name, LockMode mode) {
  return {{.name = std::move(name), .claim = mode}};
}

std::vector<backends::Item> all(const std::vector<std::string>& names, LockMode mode) {
  std::vector<backends::Item> items;
  for (const auto& name : names) {
    items.push_back({.name = name, .claim = mode});
  }
  return items;
}

}  // namespace

Client::Client(std::shared_ptr<detail::Session> session) noexcept : session_(std::move(session)) {}

Mutex Client::mutex(std::string name, LockOptions options) const {
  // Constructors of locks never fail: make_spec() records an error, which each acquire returns.
  return detail::Factory::make<Mutex>(
      detail::make_spec(session_, one(std::move(name), LockMode::exclusive), std::move(options)));
}

RwLock Client::rw_lock(std::string name, LockOptions options) const {
  // The kind selects the recipe on services where other libraries use the same lock.
  constexpr auto kind = backends::LockKind::rw_lock;
  // Two specifications with the same name and options, which differ in the mode only.
  auto exclusive = detail::make_spec(session_, one(name, LockMode::exclusive), options, kind);
  auto shared =
      detail::make_spec(session_, one(std::move(name), LockMode::shared), std::move(options), kind);
  return detail::Factory::make<RwLock>(std::move(exclusive), std::move(shared));
}

Semaphore Client::semaphore(std::string name, SemaphoreSize size, LockOptions options) const {
  std::vector<backends::Item> items{
      {.name = std::move(name),
       .claim = backends::Permits{.capacity = size.capacity, .wanted = size.taken_at_once}}};
  return detail::Factory::make<Semaphore>(
      detail::make_spec(session_, std::move(items), std::move(options)));
}

Mutex Client::all_of(std::vector<std::string> names, LockOptions options) const {
  return detail::Factory::make<Mutex>(
      detail::make_spec(session_, all(names, LockMode::exclusive), std::move(options)));
}

RwLock Client::rw_all_of(std::vector<std::string> names, LockOptions options) const {
  auto exclusive = detail::make_spec(session_, all(names, LockMode::exclusive), options);
  auto shared = detail::make_spec(session_, all(names, LockMode::shared), std::move(options));
  return detail::Factory::make<RwLock>(std::move(exclusive), std::move(shared));
}

Election Client::election(std::string name, LockOptions options) const {
  return detail::Factory::make<Election>(
      detail::make_spec(session_, one(std::move(name), LockMode::exclusive), std::move(options)));
}

Result<Lease> Client::lease(LeaseOptions options) const {
  if (session_->is_inherited()) {
    return std::unexpected(backends::inherited_error());
  }
  if (auto error = detail::check_ttl(options.ttl, options.renewals_per_ttl, session_->limits())) {
    return std::unexpected(*std::move(error));
  }
  if (!session_->backend().capabilities().has(backends::Capability::one_lease)) {
    return fail(Errc::unsupported, "this backend does not support a lease for several locks");
  }
  // Unlike the lease of a single hold, this one is confirmed before it is returned: the user
  // attaches several locks to it and has to know that it exists.
  detail::Completion<void> granted(session_->backend());
  auto record = session_->new_lease({.id = LeaseId{sys::random_id()},
                                     .ttl = options.ttl,
                                     .renewals_per_ttl = options.renewals_per_ttl},
                                    granted.callback());
  auto answer = granted.wait_for(session_->request_timeout());
  if (!answer) {
    // The request may still arrive; the revocation follows it.
    session_->end_lease(record);
    return fail(Errc::unavailable, "no reply to the request for a lease");
  }
  if (!*answer) {
    return std::unexpected(std::move(*answer).error());
  }
  return detail::Factory::make<Lease>(
      std::make_shared<detail::SharedLease>(session_, std::move(record)));
}

Result<Watch> Client::watch(std::string name, WatchOptions options) const {
  return detail::watch(session_,
                       {.name = session_->key_prefix() + name,
                        .scope = options.scope,
                        .start = options.start.value_or(Revision{})},
                       options.events_max);
}

Result<std::vector<Holder>> Client::holders(std::string name) const {
  return detail::holders_of(*session_, session_->key_prefix() + name);
}

const std::string& Client::owner() const noexcept {
  return session_->owner();
}

bool Client::is_connected() const noexcept {
  return session_->is_connected();
}

}  // namespace tenure
