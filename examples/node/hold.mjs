#!/usr/bin/env node
// Acquires a lock of a running tenured, holds it for some seconds and releases it.
//
//     node hold.mjs NAME [--seconds 10] [--server 127.0.0.1:7420,...] [--wait SECONDS]
//
// The same as examples/python/hold.py: stubs generated from proto/ at load time, following the
// leader of a cluster and learning its members, keeping a lease alive, a Lock call that waits in
// the queue, and the fencing token for storage. Run `npm ci` in this folder first.
//
// longs: String, because ids and tokens have 64 bits and JavaScript numbers have 53.

import { randomBytes } from "node:crypto";
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

const UNAVAILABLE = grpc.status.UNAVAILABLE;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const freshId = () => (randomBytes(8).readBigUInt64BE() >> 1n).toString();

/** Sends a call to the leader of a cluster (docs/reference/grpc.md, "The leader"). */
class Leader {
  static HOPS_MAX = 4; // redirects followed without a pause
  // A hanging leader keeps its connections open; pings detect it.
  static OPTIONS = { "grpc.keepalive_time_ms": 2000, "grpc.keepalive_timeout_ms": 1000 };

  constructor(servers) {
    this.servers = servers;
    this.turn = 0;
    this.hops = 0;
    this.goTo(servers[0]);
  }

  goTo(server) {
    this.server = server;
    this.service = new LockService(server, grpc.credentials.createInsecure(), Leader.OPTIONS);
    this.admin = new Admin(server, grpc.credentials.createInsecure(), Leader.OPTIONS);
  }

  /** Replaces the list of servers by the current members: all initial servers may be replaced over
   * time. Without a reply the list does not change. */
  async learnMembers() {
    const members = await new Promise((resolve) => {
      this.admin.MemberList({}, { deadline: Date.now() + 1000 }, (error, reply) => {
        resolve(error ? [] : reply.members);
      });
    });
    const servers = members.map((member) => member.client_address).filter((address) => address);
    this.servers = servers.length > 0 ? servers : this.servers;
  }

  /** Returns the leader's reply. Retries when the leader changes, so the request must contain ids
   * that stay the same across retries. */
  async ask(method, request) {
    for (;;) {
      const service = this.service;
      try {
        const answer = await new Promise((resolve, reject) => {
          service[method](request, (error, reply) => (error ? reject(error) : resolve(reply)));
        });
        this.hops = 0;
        return answer;
      } catch (error) {
        await this.leave(service, error);
      }
    }
  }

  /** Renews the lease once. Returns its TTL, or 0 if the lease is lost. */
  async renew(id) {
    for (;;) {
      const service = this.service;
      try {
        return await new Promise((resolve, reject) => {
          const stream = service.LeaseKeepAlive();
          stream.on("data", (answer) => resolve(Number(answer.ttl_ms)));
          stream.on("error", reject);
          stream.write({ id });
          stream.end();
        });
      } catch (error) {
        await this.leave(service, error);
      }
    }
  }

  async leave(service, error) {
    if (error.code !== UNAVAILABLE) {
      throw error;
    }
    if (service !== this.service) {
      return; // another call has switched already
    }
    const [leader] = error.metadata.get("tenure-leader");
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

async function hold({ name, server, seconds, wait }) {
  const leader = new Leader(server.split(","));
  // The client chooses the ids, so it can retry the request safely.
  const lease = { id: freshId(), request_id: "1", ttl_ms: "9000", client: "hold.mjs" };
  await leader.ask("LeaseGrant", lease);
  await leader.learnMembers();

  // Every third of the TTL, so two lost renewals are tolerated.
  let over = false;
  const keeper = setInterval(async () => {
    if ((await leader.renew(lease.id)) === 0 && !over) { // else this program has revoked it
      console.error("the lease and its lock are lost");
      process.exit(79);
    }
    await leader.learnMembers();
  }, Number(lease.ttl_ms) / 3);

  const request = { name, lease_id: lease.id, request_id: "2", owner: `pid ${process.pid}` };
  if (wait !== undefined) {
    request.timeout_ms = String(Math.round(Number(wait) * 1000));
  }
  const held = await leader.ask("Lock", request);
  if (held.acquired) {
    console.log(`${name} is held, fencing token ${held.fencing_token}`);
    await pause(Number(seconds) * 1000);
    await leader.ask("Unlock", {
      lease_id: lease.id, fencing_token: held.fencing_token, request_id: "3",
    });
  } else {
    console.log(`${name}: ${held.detail}`);
  }
  over = true;
  clearInterval(keeper);
  await leader.ask("LeaseRevoke", { id: lease.id });
  if (held.acquired) {
    console.log(`${name} is released`);
  }
  return held.acquired ? 0 : 75;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "10" },
    server: { type: "string", default: "127.0.0.1:7420" },
    wait: { type: "string" },
  },
});
if (positionals.length !== 1) {
  console.error("usage: hold.mjs NAME [--seconds 10] [--server HOST:PORT,...] [--wait SECONDS]");
  process.exit(64);
}
try {
  process.exit(await hold({ name: positionals[0], ...values }));
} catch (error) {
  console.error(`${grpc.status[error.code] ?? "error"}: ${error.details ?? error.message}`);
  process.exit(69);
}
