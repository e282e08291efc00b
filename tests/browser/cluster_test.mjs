// A cluster, its members, and servers that are away.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close_everything, eventually, Stage, texts, Viewer } from "./stage.mjs";

let viewer;
before(async () => {
  viewer = await Viewer.open();
});
after(async () => {
  await close_everything();
  viewer.expect_no_complaints();
});

test("members, leader and log positions are those of the API, on every member", async () => {
  const stage = await Stage.open("--members", "3");
  await stage.do("lock", { name: "a", as: "ann" });
  const page = await viewer.visit(stage.address, "#/cluster");
  await page.waitForSelector(".member");
  const cluster = await stage.api("/v1/cluster");
  const shown = await page.locator(".member").evaluateAll((cards) => cards.map((card) =>
    [card.dataset.member, card.querySelector(".member-role").textContent]));
  assert.deepEqual(shown, cluster.members.map((member) =>
    [member.id, member.is_leader ? "leader" : "follower"]));
  const last = (await stage.api("/v1/status")).log.last;
  await eventually(() => texts(page, "[data-testid=match]"),
    (seen) => seen.length === 3 && seen.every((match) => BigInt(match) >= BigInt(last)),
    "all have the log");

  const other = stage.addresses.find((address) => address !== stage.address);
  const follower = await viewer.visit(other, "#/cluster");
  await follower.getByText("This is a follower").waitFor();
  assert.match(await follower.textContent(".health"), /follows/);
  await follower.goto(`${other}/#/lock?name=a`);
  const button = follower.getByRole("button", { name: "Force release" });
  await eventually(() => button.getAttribute("title"), (title) => /ask the leader/.test(title),
    "it says whom to ask");
  assert.ok(await button.isDisabled());
  await follower.close();

  const gone = cluster.members.find((member) => !member.is_leader).id;
  await stage.do("kill", { member: Number(gone) });
  await page.locator(`.member.is-silent[data-member="${gone}"]`).waitFor();
  await stage.do("start", { member: Number(gone) });
  await eventually(() => page.locator(".member.is-silent").count(), (silent) => silent === 0,
    "it is back");
  await page.close();
  await stage.close();
});

// Before an upgrade an operator looks here whether all members support the next version.
test("the cluster version and the newest version of each member are shown", async () => {
  const stage = await Stage.open("--members", "3");
  await eventually(() => stage.api("/v1/cluster"), (cluster) => cluster.cluster_version === "2" &&
    cluster.members.every((member) => member.newest_version === "2"), "all use version 2");
  const page = await viewer.visit(stage.address, "#/cluster");
  await eventually(() => texts(page, "[data-testid=cluster-version]"),
    (seen) => seen.join() === "cluster version 2", "the version of the cluster");
  await eventually(() => texts(page, "[data-testid=newest-version]"),
    (seen) => seen.join() === "2,2,2", "those of the members");
  await page.close();
  await stage.close();
});

test("a server that is away is said to be, and comes back by itself", async () => {
  const stage = await Stage.open();
  await stage.do("lock", { name: "a", as: "ann" });
  const page = await viewer.visit(stage.address, "#/locks");
  await page.waitForSelector(".row");
  await stage.do("kill");
  await page.getByText("tenured does not answer.").waitFor();
  assert.match(await page.textContent(".health"), /offline/);
  // What was known is still there to be read.
  assert.equal(await page.locator(".row").count(), 1);

  await stage.do("start");
  await eventually(() => page.locator(".banner").count(), (banners) => banners === 0, "it is back");
  await stage.do("lock", { name: "b", as: "ben" });
  await eventually(() => texts(page, ".row .name"), (seen) => seen.join() === "a,b",
    "it follows again");
  await page.close();
  await stage.close();
});

test("who may not force-release is told why", async () => {
  const stage = await Stage.open("--listen-http-force", "off");
  await stage.do("lock", { name: "a", as: "ann" });
  const page = await viewer.visit(stage.address, "#/lock?name=a");
  const button = page.getByRole("button", { name: "Force release" });
  await eventually(() => button.getAttribute("title"), (title) => /http_force is off/.test(title),
    "why");
  assert.ok(await button.isDisabled());
  assert.match(await page.textContent(".access"), /reader/);
  await page.close();
  await stage.close();
});
