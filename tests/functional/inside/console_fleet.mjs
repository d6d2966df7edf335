// The fleet's view of the console in a real Chromium, in the state that its last argument names.
import { createRequire } from "node:module";
import fs from "node:fs";

const [modules, chromium, folder, link, state] = process.argv.slice(2);
const { chromium: browserType } = createRequire(modules + "/")("playwright-core");
const ok = (good, what, ...diag) => process.stdout.write(JSON.stringify({ ok: !!good, what: `${state}: ${what}`, diag: diag.map(String) }) + "\n");

const browser = await browserType.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
const problems = [];
const p = await (await browser.newContext({ viewport: { width: 1360, height: 860 } })).newPage();
p.on("console", (m) => m.type() === "error" && problems.push(m.text()));
p.on("pageerror", (e) => problems.push(String(e)));
try {
  await p.goto(link);
  await p.waitForSelector(".app");
  await p.evaluate(() => document.activeElement?.blur());
  await p.keyboard.press("f");
  const view = "main .view:not([hidden]) ", card = (name) => `${view}article.host[aria-label="Host ${name}"]`;
  await p.waitForSelector(card("c"), { timeout: 10000 });
  const said = async (name) => (await p.innerText(card(name))).replace(/\s+/g, " ");
  const [a, b, c, top] = [await said("a"), await said("b"), await said("c"), await p.innerText(view + "p[role=status]")];
  const badge = await p.innerText('nav a[href="#fleet"] .extra');
  if (state === "connected") {
    ok(/^connected a this host/.test(a) && /^connected b heard/.test(b), "hosts, and when they were heard of", a, b);
    ok(/agrees [\d,]+ records, said (just now|\d+ s ago)/i.test(b), "how long a log is, and that it agrees", b);
    ok(/\d+ of requests 40\/h, policy coder/.test(b) && /waits for a word 1/i.test(b) && /shares of budgets none/i.test(a), "shares, and what waits", b, a);
    ok(/As read by a/.test(top) && badge === "", "whose words these are", top, badge);
  } else if (state === "doubted") {
    ok(/^silent c silent, last heard \d+ (s|min) ago/.test(c) && /It said this/.test(c), "a host that is gone, since when, and that its words are old", c);
    ok(/cut or rolled back/.test(b) && /its log went back|not the one of the head before/.test(b), "a log that was put back, and why", b);
    ok(/heads are missing/.test(c), "and one whose heads the database lost", c);
    ok(badge === "2", "the list of views counts them", badge);
  } else {
    ok(/does not hear the fleet/.test(top) && (await p.$(view + "p[role=status].bad")), "what is shown is old, and how old", top);
    ok(/^unknown b/.test(b) && /cannot say whether that one is there/.test(b), "nobody is said to be there", b);
  }
  await p.evaluate(fs.readFileSync(modules + "/axe-core/axe.min.js", "utf8"));
  for (const width of [1360, 390]) {
    await p.setViewportSize({ width, height: 860 });
    const found = await p.evaluate(async () => (await axe.run(document, { resultTypes: ["violations"] })).violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join("; ")}`));
    ok(!found.length, `axe finds nothing at ${width} px`, ...found);
    ok((await p.evaluate(() => document.documentElement.scrollWidth)) <= width, `it fits ${width} px`);
  }
  await p.screenshot({ path: `${folder}/fleet-${state.replace(" ", "-")}.png`, fullPage: true });
  ok(!problems.length, "the page reports nothing", ...problems);
} catch (e) {
  ok(false, "it goes through", e, await p.evaluate(() => document.body.innerText.slice(0, 2000)).catch(() => ""));
}
await browser.close();
