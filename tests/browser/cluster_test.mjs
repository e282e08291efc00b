// Cluster view, and unreachable servers.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close_all, eventually, Fixture, texts, Viewer } from "./fixture.mjs";

let viewer;
before(async () => {
  viewer = await Viewer.open();
});
after(async () => {
  await close_all();
  viewer.expect_no_errors();
});

test("members, leader and log positions are those of the API, on every member", async () => {
  const fixture = await Fixture.open("--members", "3");
  await fixture.do("lock", { name: "a", as: "ann" });
  const page = await viewer.visit(fixture.address, "#/cluster");
  await page.waitForSelector(".member");
  const cluster = await fixture.api("/v1/cluster");
  const shown = await page.locator(".member").evaluateAll((cards) => cards.map((card) =>
    [card.dataset.member, card.querySelector(".member-role").textContent]));
  assert.deepEqual(shown, cluster.members.map((member) =>
    [member.member, member.is_leader ? "leader" : "follower"]));
  const last = (await fixture.api("/v1/status")).log.last_index;
  await eventually(() => texts(page, "[data-testid=match]"),
    (seen) => seen.length === 3 && seen.every((match) => BigInt(match) >= BigInt(last)),
    "all members have replicated the log");

  const other = fixture.addresses.find((address) => address !== fixture.address);
  const follower = await viewer.visit(other, "#/cluster");
  await follower.getByText("This member is a follower").waitFor();
  assert.match(await follower.textContent(".health"), /follower/);
  await follower.goto(`${other}/#/lock?name=a`);
  const button = follower.getByRole("button", { name: "Force release" });
  await eventually(() => button.getAttribute("title"), (title) => /use the leader/.test(title),
    "the title names the leader");
  assert.ok(await button.isDisabled());
  await follower.close();

  const gone = cluster.members.find((member) => !member.is_leader).member;
  await fixture.do("kill", { member: Number(gone) });
  await page.locator(`.member.is-silent[data-member="${gone}"]`).waitFor();
  await fixture.do("start", { member: Number(gone) });
  await eventually(() => page.locator(".member.is-silent").count(), (silent) => silent === 0,
    "the member is connected again");
  await page.close();
  await fixture.close();
});

// Before an upgrade an operator looks here whether all members support the next version.
test("the cluster version and the newest version of each member are shown", async () => {
  const fixture = await Fixture.open("--members", "3");
  await eventually(() => fixture.api("/v1/cluster"), (cluster) => cluster.cluster_version === "2" &&
    cluster.members.every((member) => member.newest_version === "2"), "all use version 2");
  const page = await viewer.visit(fixture.address, "#/cluster");
  await eventually(() => texts(page, "[data-testid=cluster-version]"),
    (seen) => seen.join() === "cluster version 2", "the version of the cluster");
  await eventually(() => texts(page, "[data-testid=newest-version]"),
    (seen) => seen.join() === "2,2,2", "those of the members");
  await page.close();
  await fixture.close();
});

test("an unreachable server is shown as offline, and the page reconnects", async () => {
  const fixture = await Fixture.open();
  await fixture.do("lock", { name: "a", as: "ann" });
  const page = await viewer.visit(fixture.address, "#/locks");
  await page.waitForSelector(".row");
  await fixture.do("kill");
  await page.getByText("tenured does not respond.").waitFor();
  assert.match(await page.textContent(".health"), /offline/);
  // The page keeps the last known state.
  assert.equal(await page.locator(".row").count(), 1);

  await fixture.do("start");
  await eventually(() => page.locator(".banner").count(), (banners) => banners === 0,
    "reconnected");
  await fixture.do("lock", { name: "b", as: "ben" });
  await eventually(() => texts(page, ".row .name"), (seen) => seen.join() === "a,b",
    "the list is live again");
  await page.close();
  await fixture.close();
});

test("a disabled force-release button shows the reason", async () => {
  const fixture = await Fixture.open("--listen-http-force", "off");
  await fixture.do("lock", { name: "a", as: "ann" });
  const page = await viewer.visit(fixture.address, "#/lock?name=a");
  const button = page.getByRole("button", { name: "Force release" });
  await eventually(() => button.getAttribute("title"), (title) => /http_force is off/.test(title),
    "the reason");
  assert.ok(await button.isDisabled());
  assert.match(await page.textContent(".access"), /reader/);
  await page.close();
  await fixture.close();
});
