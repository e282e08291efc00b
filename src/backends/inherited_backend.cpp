#include "backends/inherited_backend.hpp"

#include <utility>

namespace tenure::backends {
namespace {

class InheritedBackend final : public Backend {
 public:
  [[nodiscard]] Capabilities capabilities() const noexcept override { return {}; }
  void start(Listener& /*listener*/) override {}
  void grant_lease(LeaseRequest /*request*/, Done<void> done) override { refuse(done); }
  void renew_leases(std::vector<LeaseId> /*leases*/, Done<Renewed> done) override { refuse(done); }
  void revoke_lease(LeaseId /*lease*/, Done<void> done) override { refuse(done); }
  void acquire(AcquireRequest /*request*/, Done<Granted> done) override { refuse(done); }
  void abandon(LeaseId /*lease*/, RequestId /*request*/) override {}
  void release(ReleaseRequest /*request*/, Done<void> done) override { refuse(done); }
  WatchId watch(WatchRequest /*request*/, Sink sink) override {
    sink(std::unexpected(inherited_error()));
    return {};
  }
  void holders(std::string /*name*/, Done<std::vector<Holder>> done) override { refuse(done); }

 private:
  template <class T>
  static void refuse(Done<T>& done) {
    done(std::unexpected(inherited_error()));
  }
};

}  // namespace

Error inherited_error() {
  return {.code = Errc::unsupported,
          .detail = "the client was connected before fork(); connect() again in the child"};
}

Backend& inherited_backend() noexcept {
  static InheritedBackend backend;
  return backend;
}

}  // namespace tenure::backends
