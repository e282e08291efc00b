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
  await follower.getByText("This member is a follower. Only").waitFor();
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

/// Address and id of a member, as it describes itself.
async function member_at(address) {
  return { address, id: (await (await fetch(`${address}/v1/status`)).json()).member };
}

test("without a leader, members that are down are shown as unreachable", async () => {
  const fixture = await Fixture.open("--members", "3");
  const members = await Promise.all(fixture.addresses.map(member_at));
  const [survivor, ...others] = members.filter((member) => member.address !== fixture.address)
    .concat(members.filter((member) => member.address === fixture.address));
  const page = await viewer.visit(survivor.address, "#/cluster");
  await page.waitForSelector(".member");
  await eventually(() => page.locator(".member.is-silent").count(), (silent) => silent === 0,
    "all are connected");
  for (const { id } of others) {
    await fixture.do("kill", { member: Number(id) });
  }
  await page.getByText("The cluster has no leader, so").waitFor();
  await eventually(() => page.locator(".member.is-silent").evaluateAll((cards) =>
    cards.map((card) => card.dataset.member).sort()),
    (silent) => silent.join() === others.map(({ id }) => id).sort().join(), "the dead members");
  assert.deepEqual([...new Set(await texts(page, ".member.is-silent .member-role"))],
    ["unreachable"]);
  assert.match(await page.textContent(".card.is-trouble"), /connected to 0 of the other 2 members/);
  await page.close();
  await fixture.close();
});

/// Gives the secret of the leader, if the page asks for it, and confirms.
async function confirm(page, button, secret) {
  if (secret) {
    await page.getByLabel("Secret", { exact: true }).fill(secret);
    await page.getByRole("button", { name: "Continue" }).click();
  }
  await page.getByRole("dialog").getByRole("button", { name: button }).click();
}

test("an administrator adds and removes a member and transfers the leadership", async () => {
  const fixture = await Fixture.open("--members", "3");
  const admin = await Viewer.open();
  const page = await admin.visit(fixture.address, "#/cluster");
  await page.waitForSelector(".member");
  const remove = (id) => page.locator(`.member[data-member="${id}"]`)
    .getByRole("button", { name: "Remove" });
  await eventually(() => remove(2).isDisabled(), Boolean, "three voters stay");
  assert.match(await page.locator('.member[data-member="2"]').textContent(), /keeps 3 voters/);

  const { peer, client } = await fixture.do("join", { member: 4 });
  await page.getByRole("button", { name: "Add member" }).click();
  await page.getByLabel("Secret", { exact: true }).fill(fixture.secret);
  await page.getByRole("button", { name: "Continue" }).click();
  const dialog = page.getByRole("dialog");
  assert.equal(await dialog.getByLabel("Id, never used before").inputValue(), "4");
  await dialog.getByLabel("Address for the other members").fill("nonsense");
  await dialog.getByLabel("Address for clients").fill(client);
  await dialog.getByRole("button", { name: "Add member" }).click();
  await dialog.getByRole("alert").getByText("peer_address").waitFor();
  await dialog.getByLabel("Address for the other members").fill(peer);
  await dialog.getByRole("button", { name: "Add member" }).click();
  await page.getByText("Member 4 votes.").waitFor();
  await eventually(() => page.locator(".member").count(), (members) => members === 4, "four");

  const leader = (await fixture.api("/v1/status")).member;
  const gone = ["1", "2", "3"].find((id) => id !== leader);
  await remove(gone).click();
  await confirm(page, "Remove member");
  await eventually(() => page.locator(".member").count(), (members) => members === 3, "three");

  const next = ["1", "2", "3"].find((id) => id !== leader && id !== gone);
  await page.locator(`.member[data-member="${next}"]`).getByRole("button", { name: "Make leader" })
    .click();
  await confirm(page, "Transfer leadership");
  await page.locator(`.member.is-leader[data-member="${next}"]`).waitFor();
  // This member follows now: the page names the leader next to the button.
  await page.getByText(`This member is a follower; use the leader, member ${next}`).waitFor();
  assert.ok(await page.getByRole("button", { name: "Add member" }).isDisabled());
  admin.expect_no_errors();
  await admin.close();
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
  // Also next to the button, because a phone shows no tooltips.
  for (const hash of ["#/lock?name=a", "#/cluster"]) {
    await page.goto(`${fixture.address}/${hash}`);
    await page.waitForSelector("main button:disabled");
    const buttons = await page.locator("main button:disabled").evaluateAll((all) =>
      all.map((one) => [one.textContent.trim(),
        document.getElementById(one.getAttribute("aria-describedby"))?.textContent]));
    for (const [name, reason] of buttons) {
      assert.match(reason ?? "", /http_force is off|configured/, name);
    }
  }
  await page.close();
  await fixture.close();
});
