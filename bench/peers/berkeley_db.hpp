#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <db.h>

#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure::bench {

/// The lock subsystem of Berkeley DB 5.3, alone: a private environment in memory, no log, no cache,
/// no transactions. https://docs.oracle.com/database/bdb181/html/programmer_reference/lock.html
class BerkeleyDb {
 public:
  static constexpr std::string_view name = "berkeley_db";

  /// REQUIRES: at most `locks_at_once` locks and a few more are held at one time.
  explicit BerkeleyDb(std::size_t locks_at_once) {
    DB_ENV* env = nullptr;
    insist(db_env_create(&env, 0), "db_env_create");
    env_.reset(env);
    const auto most = static_cast<std::uint32_t>(locks_at_once + 10'000);
    insist(env->set_lk_max_locks(env, most), "set_lk_max_locks");
    insist(env->set_lk_max_objects(env, most), "set_lk_max_objects");
    insist(env->set_lk_max_lockers(env, most), "set_lk_max_lockers");
    insist(env->open(env, nullptr, DB_CREATE | DB_PRIVATE | DB_THREAD | DB_INIT_LOCK, 0), "open");
  }

  [[nodiscard]] DB_ENV* env() const { return env_.get(); }

  [[nodiscard]] std::uint32_t new_locker() const {
    std::uint32_t locker = 0;
    insist(env_->lock_id(env_.get(), &locker), "lock_id");
    return locker;
  }

  /// How many requests ever had to wait.
  [[nodiscard]] std::uint64_t waits() const {
    DB_LOCK_STAT* stat = nullptr;
    insist(env_->lock_stat(env_.get(), &stat, 0), "lock_stat");
    const std::unique_ptr<DB_LOCK_STAT, decltype(&std::free)> owned(stat, &std::free);
    return static_cast<std::uint64_t>(owned->st_lock_wait);
  }

  /// One run of the deadlock detector.
  void detect() const {
    insist(env_->lock_detect(env_.get(), 0, DB_LOCK_YOUNGEST, nullptr), "lock_detect");
  }

  /// One locker.
  class Session {
   public:
    Session(BerkeleyDb& table, TxnId /*txn*/) : env_(table.env()), locker_(table.new_locker()) {}

    [[nodiscard]] bool acquire(ResourceId resource, LockMode mode) {
      return get(object(resource), mode, DB_LOCK_NOWAIT);
    }
    [[nodiscard]] bool acquire(std::string_view text, LockMode mode) {
      return get(object(text), mode, DB_LOCK_NOWAIT);
    }
    [[nodiscard]] bool lock(ResourceId resource, LockMode mode) {
      return get(object(resource), mode, 0);
    }

    /// Releases the last lock or the one before it; earlier ones need release_all().
    template <class Any>
    void release(const Any& /*what*/) {
      if (held_count_ > 0) {
        --held_count_;
        insist(env_->lock_put(env_, &held_[held_count_]), "lock_put");
      }
    }
    template <class Any>
    void release_upgraded(const Any& what) {
      release(what);
      release(what);
    }
    void release_all() {
      DB_LOCKREQ all{};
      all.op = DB_LOCK_PUT_ALL;
      insist(env_->lock_vec(env_, locker_, 0, &all, 1, nullptr), "lock_vec");
      held_count_ = 0;
    }

   private:
    [[nodiscard]] static DBT object(const ResourceId& resource) {
      DBT key{};
      key.data = const_cast<ResourceId*>(&resource);
      key.size = sizeof(resource);
      return key;
    }
    [[nodiscard]] static DBT object(std::string_view text) {
      DBT key{};
      key.data = const_cast<char*>(text.data());
      key.size = static_cast<std::uint32_t>(text.size());
      return key;
    }
    [[nodiscard]] static db_lockmode_t mode_of(LockMode mode) {
      switch (mode) {
        case LockMode::intention_shared: return DB_LOCK_IREAD;
        case LockMode::intention_exclusive: return DB_LOCK_IWRITE;
        case LockMode::shared: return DB_LOCK_READ;
        case LockMode::shared_intention_exclusive: return DB_LOCK_IWR;
        case LockMode::update:
        case LockMode::exclusive: break;
      }
      return DB_LOCK_WRITE;
    }

    [[nodiscard]] bool get(DBT key, LockMode mode, std::uint32_t flags) {
      DB_LOCK lock{};
      if (env_->lock_get(env_, locker_, flags, &key, mode_of(mode), &lock) != 0) {
        return false;
      }
      if (held_count_ < held_.size()) {
        held_[held_count_++] = lock;
      }
      return true;
    }

    DB_ENV* env_;
    std::uint32_t locker_;
    std::size_t held_count_ = 0;
    std::array<DB_LOCK, 2> held_;
  };

 private:
  struct Close {
    void operator()(DB_ENV* env) const { (void)env->close(env, 0); }
  };

  static void insist(int status, const char* call) {
    if (status != 0) {
      std::fprintf(stderr, "Berkeley DB: %s: %s\n", call, db_strerror(status));
      std::abort();
    }
  }

  std::unique_ptr<DB_ENV, Close> env_;
};

}  // namespace tenure::bench
