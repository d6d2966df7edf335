// imapflow as programs use it. argv: host, port. Says "ok".
const assert = require("assert");
const { ImapFlow } = require("imapflow");

async function main() {
  const [host, port] = [process.argv[2], Number(process.argv[3])];
  const c = new ImapFlow({ host, port, secure: port === 993, auth: { user: "u", pass: "placeholder" }, logger: false, qresync: true });
  await c.connect();
  assert.strictEqual(c.secureConnection, true);
  assert.deepStrictEqual((await c.list()).map((m) => m.path).sort(), ["Archive/2026", "INBOX", "Sent"]);
  assert.ok((await c.status("INBOX", { messages: true })).messages >= 2);
  const counted = await c.list({ statusQuery: { messages: true, highestModseq: true } });
  assert.ok(counted.every((m) => m.status.messages >= 0 && m.status.highestModseq > 0n), "LIST-STATUS");
  let lock = await c.getMailboxLock("INBOX");
  const one = await c.fetchOne("1", { source: true, envelope: true, bodyStructure: true, flags: true });
  assert.strictEqual(one.envelope.subject, "first");
  assert.match(one.source.toString(), /welcome-4711/);
  assert.deepStrictEqual(await c.search({ subject: "first" }), [1]);
  let n = 0;
  for await (const m of c.fetch("1:*", { uid: true })) n += m.uid > 0;
  assert.strictEqual(n, c.mailbox.exists);
  const { content } = await c.download("1");
  let text = "";
  for await (const chunk of content) text += chunk;
  assert.match(text, /welcome-4711/);
  lock.release();
  const put = await c.append("Sent", "Subject: flow\r\n\r\nx\r\n", ["\\Seen"]);
  assert.ok(put.uid > 0);
  lock = await c.getMailboxLock("Sent");
  assert.ok(await c.messageFlagsAdd(String(put.uid), ["\\Flagged"], { uid: true }));
  assert.ok(c.enabled.has("QRESYNC") && c.mailbox.highestModseq > 0n);
  const changed = [];
  for await (const m of c.fetch("1:*", { uid: true, flags: true }, { changedSince: c.mailbox.highestModseq - 1n })) changed.push(m.modseq);
  assert.ok(changed.length > 0 && changed.every((m) => m > 0n), "CHANGEDSINCE");
  const copied = await c.messageCopy(String(put.uid), "Archive/2026", { uid: true });
  assert.strictEqual([...copied.uidMap.keys()][0], put.uid);
  assert.ok(await c.messageMove(String(put.uid), "Archive/2026", { uid: true }));
  await c.noop();
  lock.release();
  await assert.rejects(async () => { await (await c.getMailboxLock("Secret")).release(); });
  await c.logout();
  console.log("ok");
}

main().catch((e) => { console.error(e); process.exit(1); });
