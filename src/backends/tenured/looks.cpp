#include "backends/tenured/looks.hpp"

#include <chrono>
#include <utility>

#include "backends/tenured/proto_types.hpp"

namespace tenure::backends::tenured {
namespace {

constexpr std::chrono::milliseconds again_after{50};

}  // namespace

void Looks::add(std::string name, Done done) {
  if (open_.size() >= open_max) {
    done(fail(Errc::resource_exhausted, "too many questions are not answered yet"));
    return;
  }
  const auto id = ++last_id_;
  const auto& look = open_.emplace(id, Look{std::move(name), std::move(done)}).first->second;
  if (channel_) {
    ask(id, look.name);
  }
}

void Looks::connected(const std::shared_ptr<grpc::Channel>& channel) {
  channel_ = channel;
  ask_all();
}

void Looks::disconnected() {
  channel_.reset();
  again_.cancel();
  is_again_due_ = false;
}

void Looks::ask_all() {
  std::vector<std::pair<Id, std::string>> again;
  for (const auto& [id, look] : open_) {
    again.emplace_back(id, look.name);
  }
  for (const auto& [id, name] : again) {
    ask(id, name);
  }
}

void Looks::end(const Error& why) {
  disconnected();
  for (auto& [id, look] : std::exchange(open_, {})) {
    look.done(std::unexpected(why));
  }
}

void Looks::ask(Id id, const std::string& name) {
  v1::ListRequest request;
  request.set_prefix(name);
  request.set_limit(2);  // A lock and a space may have the same name.
  grpc::Question<v1::ListResponse>::ask(
      *channel_, "/tenure.v1.Admin/List", request,
      [this, alive = std::weak_ptr(life_), id, channel = channel_.get()](
          const grpc::Status& status, const v1::ListResponse& answer) {
        // What an older connection says at its end is of no use any more.
        if (!alive.expired() && channel_.get() == channel) {
          answered(id, status, answer);
        }
      });
}

void Looks::answered(Id id, const grpc::Status& status, const v1::ListResponse& answer) {
  const auto it = open_.find(id);
  if (it == open_.end()) {
    return;
  }
  const auto error = error_from(status, channel_->authority());
  if (!status.ok() && error == Errc::unavailable) {
    // It does not lead any more, so that another connection is due; or it is not sure.
    if (!std::exchange(is_again_due_, true)) {
      again_.expires_after(again_after);
      again_.async_wait([this](const boost::system::error_code& cancelled) {
        if (!cancelled && std::exchange(is_again_due_, false) && channel_) {
          ask_all();
        }
      });
    }
    return;
  }
  auto look = std::move(it->second);
  open_.erase(it);
  if (!status.ok()) {
    look.done(std::unexpected(error));
    return;
  }
  std::vector<Holder> found;
  for (const auto& lock : answer.locks()) {
    for (const auto& holder :
         lock.name() == look.name ? lock.holders() : decltype(lock.holders()){}) {
      found.push_back(holder_from(holder));
    }
  }
  look.done(std::move(found));
}

}  // namespace tenure::backends::tenured
