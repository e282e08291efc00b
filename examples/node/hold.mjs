#!/usr/bin/env node
// Acquires a lock of a running tenured, holds it for some seconds and releases it.
//
//     node hold.mjs NAME [--seconds 10] [--wait SECONDS] [--server 127.0.0.1:7420,...] [--ttl 9]
//                   [--token-file FILE] [--tls-ca FILE [--tls-cert FILE --tls-key FILE]]
//
// The same as examples/python/hold.py: stubs generated from proto/ at load time, following the
// leader of a cluster and learning its members, keeping a lease alive, stopping before the lease
// can end at the server, a Lock call that waits in the queue, TLS, a bearer token, and the fencing
// token for storage. Exit codes: 69 no server, 75 not acquired, 77 not permitted, 79 lost. Run
// `npm ci` in this folder first.
//
// longs: String, because ids and tokens have 64 bits and JavaScript numbers have 53.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import grpc from "@grpc/grpc-js";
import protoLoader from "@grpc/proto-loader";

const PROTO = fileURLToPath(new URL("../../proto", import.meta.url));
const { LockService, Admin } = grpc.loadPackageDefinition(
  protoLoader.loadSync(["tenure/v1/lock.proto", "tenure/v1/admin.proto"], {
    includeDirs: [PROTO], longs: String, enums: String, keepCase: true, defaults: true,
  }),
).tenure.v1;

const CONNECT_MS = 30_000; // timeout of the first call
const REVOKE_MS = 5_000; // timeout of the last call, which only frees the lease sooner
const { UNAVAILABLE, DEADLINE_EXCEEDED, UNAUTHENTICATED, PERMISSION_DENIED, NOT_FOUND } =
  grpc.status;
// NOT_FOUND: the lease has ended.
const EXIT_CODES = { [UNAUTHENTICATED]: 77, [PERMISSION_DENIED]: 77, [NOT_FOUND]: 79 };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const freshId = () => (randomBytes(8).readBigUInt64BE() >> 1n).toString();

/** Measures the time since its creation. Node has no clock that also runs while the machine is
 * suspended, so the larger of two clocks counts: a wall clock that is set forward ends a lease too
 * early, which is safe. */
class Stopwatch {
  steady = performance.now();
  wall = Date.now();

  ms() {
    return Math.max(performance.now() - this.steady, Date.now() - this.wall);
  }
}

/** How to connect to a server: TLS and bearer token. */
class Access {
  // A hanging server keeps its connections open; pings detect it.
  static OPTIONS = { "grpc.keepalive_time_ms": 2000, "grpc.keepalive_timeout_ms": 1000 };

  constructor(options) {
    const read = (name) => (options[name] === undefined ? null : readFileSync(options[name]));
    this.credentials = options["tls-ca"] === undefined
      ? grpc.credentials.createInsecure()
      : grpc.credentials.createSsl(read("tls-ca"), read("tls-key"), read("tls-cert"));
    this.metadata = new grpc.Metadata();
    if (options["token-file"] !== undefined) {
      this.metadata.set("authorization", `Bearer ${read("token-file").toString().trim()}`);
    }
  }

  connect(Service, server) {
    return new Service(server, this.credentials, Access.OPTIONS);
  }
}

/** Reply to a call with one request and one reply. */
function unary(method, request) {
  return (service, metadata, options) => new Promise((resolve, reject) => {
    service[method](request, metadata, options,
                    (error, reply) => (error ? reject(error) : resolve(reply)));
  });
}

/** Sends calls to the leader of a cluster (docs/reference/grpc.md, "The leader"). A call is a
 * function of the service, the metadata and the options of gRPC that returns a promise. */
class Leader {
  static HOPS_MAX = 4; // redirects followed without a pause

  constructor(servers, access) {
    this.servers = servers;
    this.access = access;
    this.turn = 0;
    this.hops = 0;
    this.goTo(servers[0]);
  }

  goTo(server) {
    this.server = server;
    this.service = this.access.connect(LockService, server);
    this.admin = this.access.connect(Admin, server);
  }

  /** Replaces the list of servers by the current members: all initial servers may be replaced over
   * time. Without a reply the list does not change. */
  async learnMembers(timeoutMs) {
    const ask = unary("MemberList", {});
    const { members } = await ask(this.admin, this.access.metadata,
                                  { deadline: Date.now() + timeoutMs })
      .catch(() => ({ members: [] }));
    const servers = members.map((member) => member.client_address).filter((address) => address);
    this.servers = servers.length > 0 ? servers : this.servers;
  }

  /** Returns the leader's reply to the call. Retries when the leader changes or does not reply for
   * `attemptMs`, so the request must contain ids that stay the same across retries. Throws the last
   * error when `totalMs` have passed. */
  async ask(call, { attemptMs = Infinity, totalMs = Infinity } = {}) {
    const since = new Stopwatch();
    for (;;) {
      const service = this.service;
      const timeout = Math.min(attemptMs, Math.max(totalMs - since.ms(), 0));
      try {
        const answer = await call(service, this.access.metadata,
                                  timeout === Infinity ? {} : { deadline: Date.now() + timeout });
        this.hops = 0;
        return answer;
      } catch (error) {
        const isRetried = error.code === UNAVAILABLE || error.code === DEADLINE_EXCEEDED;
        if (!isRetried || since.ms() >= totalMs) {
          throw error;
        }
        if (service === this.service) { // else another call has switched already
          await this.leave(error.metadata.get("tenure-leader")[0]);
        }
      }
    }
  }

  async leave(leader) {
    if (leader && leader !== this.server && this.hops < Leader.HOPS_MAX) {
      this.hops += 1;
      this.goTo(leader);
      return;
    }
    this.hops = 0;
    await pause(20 + Math.random() * 180);
    this.turn += 1;
    this.goTo(this.servers[this.turn % this.servers.length]);
  }
}

/** A lease that timers keep: one renews it, the other ends this process when the lease may end at
 * the server. The local deadline counts from *before* the last confirmed renewal was sent, and ends
 * earlier than the TTL by a margin for clocks of different rates. So this process stops before the
 * server can grant the lock to the next client, also when the server hangs. Work that blocks the
 * event loop delays both timers: run it in a worker or in short steps. */
class Lease {
  constructor(leader, ttlMs) {
    this.leader = leader;
    this.ttlMs = ttlMs;
    // Short attempts: a cluster needs time to reply after its leader has begun to hang.
    this.attemptMs = ttlMs / 6;
    this.isOver = false;
    this.id = freshId(); // the client chooses the id, so it can retry the request safely
  }

  async grant() {
    const request = { id: this.id, request_id: "1", ttl_ms: String(this.ttlMs),
                      client: "hold.mjs" };
    await this.leader.ask(unary("LeaseGrant", request),
                          { attemptMs: this.attemptMs, totalMs: CONNECT_MS });
    // The reply to a retry may be that of an earlier attempt, so its time is unknown: renew.
    await this.renew(CONNECT_MS);
    this.watch();
    this.keepAlive();
  }

  /** Renews the lease once and sets the local deadline. The margin is that of the library
   * (src/client/validity.hpp): 1 % of the TTL and 2 ms. */
  async renew(totalMs) {
    let sent;
    const send = (service, metadata, options) => new Promise((resolve, reject) => {
      sent = new Stopwatch(); // of this attempt: every attempt is a renewal of its own
      const stream = service.LeaseKeepAlive(metadata, options);
      stream.on("data", resolve);
      stream.on("error", reject);
      stream.write({ id: this.id });
      stream.end();
    });
    const reply = await this.leader.ask(send, { attemptMs: this.attemptMs, totalMs });
    const ttl = Number(reply.ttl_ms);
    if (ttl === 0) {
      this.lost("it has ended at the server");
    }
    this.sent = sent;
    this.validMs = ttl - (ttl / 100 + 2);
  }

  /** Milliseconds until the local deadline. */
  left() {
    return this.validMs - this.sent.ms();
  }

  watch() {
    if (this.left() <= 0) {
      this.lost("no server has confirmed a renewal");
    }
    // In short steps: timers stop while the machine is suspended.
    setTimeout(() => this.watch(), Math.min(this.left(), 100));
  }

  async keepAlive() {
    for (;;) {
      await pause(this.ttlMs / 3); // so two lost renewals are tolerated
      try {
        await this.renew(this.left());
        await this.leader.learnMembers(this.attemptMs);
      } catch (error) { // watch() ends the process in time
        console.error(`the lease is not renewed: ${error.details ?? error.message}`);
      }
    }
  }

  /** Ends this process, with all work that the lock protects. */
  lost(why) {
    if (!this.isOver) { // else this program has revoked it
      console.error(`the lease and its lock are lost: ${why}`);
      process.exit(79);
    }
  }

  async end() {
    this.isOver = true;
    // Without a reply it ends with its TTL.
    await this.leader.ask(unary("LeaseRevoke", { id: this.id }), { totalMs: REVOKE_MS })
      .catch(() => {});
  }
}

async function hold(name, options) {
  const leader = new Leader(options.server.split(","), new Access(options));
  const lease = new Lease(leader, Math.round(Number(options.ttl) * 1000));
  await lease.grant();
  await leader.learnMembers(lease.attemptMs);

  const request = { name, lease_id: lease.id, request_id: "2", owner: `pid ${process.pid}` };
  if (options.wait !== undefined) {
    request.timeout_ms = String(Math.round(Number(options.wait) * 1000));
  }
  const held = await leader.ask(unary("Lock", request));
  if (held.acquired) {
    console.log(`${name} is held, fencing token ${held.fencing_token}`);
    await pause(Number(options.seconds) * 1000); // the work that the lock protects
    await leader.ask(unary("Unlock", {
      lease_id: lease.id, fencing_token: held.fencing_token, request_id: "3",
    }));
    console.log(`${name} is released`);
  } else {
    console.log(`${name}: ${held.detail}`);
  }
  await lease.end();
  return held.acquired ? 0 : 75;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "10" },
    server: { type: "string", default: "127.0.0.1:7420" },
    wait: { type: "string" },
    ttl: { type: "string", default: "9" },
    "token-file": { type: "string" },
    "tls-ca": { type: "string" },
    "tls-cert": { type: "string" },
    "tls-key": { type: "string" },
  },
});
if (positionals.length !== 1) {
  console.error("usage: hold.mjs NAME [--seconds 10] [--wait SECONDS] [--server HOST:PORT,...]");
  process.exit(64);
}
try {
  process.exit(await hold(positionals[0], values));
} catch (error) {
  console.error(`${grpc.status[error.code] ?? "error"}: ${error.details ?? error.message}`);
  process.exit(EXIT_CODES[error.code] ?? 69);
}
