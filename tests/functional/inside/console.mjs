// The console in a real Chromium. Prints one JSON line a result; {"do": ...} asks the test for
// something and waits for its line.
import { createRequire } from "node:module";
import fs from "node:fs";
import readline from "node:readline";

const [modules, chromium, folder, where] = process.argv.slice(2);
const { chromium: browserType } = createRequire(modules + "/")("playwright-core");
const axeSource = fs.readFileSync(modules + "/axe-core/axe.min.js", "utf8");
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (v) => process.stdout.write(JSON.stringify(v) + "\n");
const ok = (good, what, ...diag) => say({ ok: !!good, what, diag: diag.map(String) });
const eq = (got, want, what) => ok(JSON.stringify(got) === JSON.stringify(want), what, "got: " + JSON.stringify(got), "want: " + JSON.stringify(want));
const please = async (what, arg) => {
  say({ do: what, arg });
  return JSON.parse((await lines.next()).value);
};

const browser = await browserType.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
const problems = [], requests = [];

async function page(options) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, ...options });
  const p = await context.newPage();
  p.on("console", (m) => m.type() === "error" && !/401/.test(m.text()) && problems.push(m.text()));
  p.on("pageerror", (e) => problems.push(String(e)));
  p.on("request", (r) => requests.push(r.url()));
  return p;
}
const shot = (p, name) => p.screenshot({ path: `${folder}/${name}.png` });
const wait = (p, fn, arg, timeout = 10000) => p.waitForFunction(fn, arg, { timeout });

async function flows() {
  const p = await page();
  await p.goto(where + "/");
  await p.waitForSelector(".welcome");
  ok(true, "without a link there is nothing but how to get one");
  const link = (await please("link")).url;
  await p.goto(link);
  await p.waitForSelector(".app");
  eq(new URL(p.url()).hash, "#live", "the token is off the address");
  await wait(p, () => document.querySelector(".state").textContent === "live");
  ok(true, "the stream is live");
  const other = await page();
  await other.goto(link);
  await other.waitForSelector(".welcome");
  ok(true, "a link is good once");
  await other.close();

  // live, filter
  await please("traffic");
  await wait(p, () => document.querySelectorAll(".attempt.row.bad").length >= 3);
  await wait(p, () => document.querySelectorAll(".attempt.row.good").length >= 5);
  const first = await p.evaluate(() => [...document.querySelectorAll(".attempt.row")].map((r) => r.innerText.replace(/\s+/g, " ")).join("\n"));
  ok(/GET api\.github\.com\/user/.test(first) && /denied_by_rule/.test(first), "allowed and refused attempts are seen live", first);
  await shot(p, "live");
  await p.keyboard.press("/");
  await p.keyboard.type("gists");
  await wait(p, () => document.querySelectorAll(".attempt.row").length > 0 && [...document.querySelectorAll(".attempt.row")].every((r) => /gists/.test(r.innerText)));
  ok(true, "a filter shows what has its words only");
  await p.keyboard.press("Escape");
  await p.keyboard.press("j");
  await p.keyboard.press("Enter");
  await p.waitForSelector(".drawer dl");
  const facts = await p.innerText(".drawer");
  ok(/denied_by_rule/.test(facts) && /deny api\.github\.com\/gists/.test(facts), "by keys: the record, with its rule", facts);
  await shot(p, "detail");
  await p.keyboard.press("e");
  await p.waitForSelector(".answer .verdict");
  eq(await p.innerText(".answer .verdict"), "deny", "explained: deny");
  await p.fill("#url", "https://api.github.com/user");
  await p.selectOption("#method", "GET");
  await p.click("form.try button");
  await wait(p, () => document.querySelector(".answer .verdict")?.textContent === "allow");
  ok(/github, bearer/.test(await p.innerText(".answer")), "another request: allow, with the credential's name");
  await shot(p, "policies");
  await p.keyboard.press("Escape");
  await p.keyboard.press("Escape");

  // approvals
  await p.click("nav >> text=Approvals");
  await please("hold");
  await p.waitForSelector(".card");
  ok(/pulls\/1\/merge/.test(await p.innerText(".card")), "a held request is shown", await p.innerText(".card"));
  await shot(p, "approvals");
  await p.click(".card .allow");
  await wait(p, () => !document.querySelector("main .view:not([hidden]) .card"));
  eq(await please("held"), { seen: true, code: "" }, "allowed: it completes at its origin");

  await wait(p, () => /pulls\/1\/merge/.test(document.querySelector("main .view:not([hidden]) tbody").innerText));
  const past = await p.innerText("main .view:not([hidden]) tbody tr >> nth=0");
  ok(/allowed/.test(past) && /console/.test(past), "what was decided is listed: request, path, who, how", past);

  // blocked, destinations, sandboxes, verification
  await p.keyboard.press("2");
  await wait(p, () => /denied_by_rule/.test(document.querySelector("main").innerText));
  await shot(p, "blocked");
  const worst = await p.innerText("main .view:not([hidden]) tbody tr >> nth=0");
  ok(/critical/.test(worst) && /foreign_credential/.test(worst) && /credential that this sandbox was not given/.test(worst), "what is worst comes first, with what its code means", worst);
  ok(/low/.test(await p.innerText("main .view:not([hidden]) tbody tr:has-text(\"no_rule\")")), "a missing rule is not a foreign credential");
  ok(/\b3\b/.test(await p.innerText("tbody tr >> nth=0")) || /gists/.test(await p.innerText("tbody")), "blocked attempts are put together");
  await p.keyboard.press("4");
  await wait(p, () => /api\.github\.com/.test([...document.querySelectorAll("main .view:not([hidden]) tbody")].map((e) => e.innerText).join()));
  const bars = await p.$$eval(".pair .bar.up", (e) => e.map((x) => x.getBoundingClientRect().width));
  ok(bars.some((w) => w > 20), "bytes of destinations are drawn", bars);
  await shot(p, "destinations");
  await p.keyboard.press("5");
  const box = (await please("sandbox")).id;
  if (box) {
    await p.click(`main .view:not([hidden]) tbody tr:has-text("${box.slice(0, 8)}")`);
    await p.waitForSelector(".timeline .mark");
    const marks = await p.$$eval(".timeline .mark", (e) => e.map((x) => x.getAttribute("class")));
    ok(marks.includes("mark good") && marks.includes("mark bad"), "a sandbox's timeline has what was allowed and refused", marks);
    await wait(p, () => document.querySelectorAll("main .view:not([hidden]) .one .attempt.row").length >= 6);
    const story = await p.innerText("main .view:not([hidden]) .one");
    ok(/site-builder/.test(story) && /exec_started/.test(story) && /1 command,/.test(story), "its story has its name, its commands and what left", story);
    await shot(p, "sandbox");
    await acts(p, box);
  }
  await history(p);
  await suppress(p);
  await axe(p);
  await p.keyboard.press("9");
  await wait(p, () => /Unbroken/.test(document.querySelector(".seal")?.innerText || ""));
  const n = await p.evaluate(() => ({ checked: app.verifier.checked, gaps: app.verifier.gaps, broken: app.verifier.broken.length }));
  ok(n.checked >= 10 && n.gaps === 0 && n.broken === 0, "the page has verified the chain of what it was shown", JSON.stringify(n));
  await please("checkpoint");
  await wait(p, () => app.verifier.checkpoints > 0);
  ok(await p.evaluate(() => app.verifier.badCheckpoints === 0), "and the signature of a checkpoint");
  await whole(p);
  await shot(p, "verify");
  await tamper(p);

  // dark, narrow
  await p.keyboard.press("1");
  await p.evaluate(() => document.activeElement.blur());
  await p.keyboard.press("t");
  await shot(p, "live-dark");
  ok(await p.evaluate(() => document.documentElement.dataset.theme === "dark"), "t makes it dark");
  await p.setViewportSize({ width: 420, height: 800 });
  await shot(p, "live-narrow");
  ok(await p.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than a narrow window");
  await p.setViewportSize({ width: 1360, height: 860 });
  return p;
}

// What can be done about a sandbox's refused request: a rule is proposed; it is paused and ended.
async function acts(p, box) {
  const view = "main .view:not([hidden]) .one ";
  await p.click(view + ".attempt.row:has-text(\"api.github.com/zen\") >> nth=0");
  await p.waitForSelector(".drawer .meaning");
  ok(/no rule of the policy allows it/.test(await p.innerText(".drawer")), "a row says what its code means");
  await p.click(".drawer >> text=Allow from now on");
  await p.waitForSelector("dialog.question[open]");
  ok(/api\.github\.com\/zen/.test(await p.inputValue("#propose-url")), "a refused request can be proposed");
  await axeOf(p, "a question");
  await p.fill("#propose-url", "https://api.github.com/zen/*");
  await p.fill("#propose-reason", "seen in the console");
  await shot(p, "propose");
  await p.keyboard.press("Enter");
  await p.waitForSelector("article.card:has-text(\"zen/*\")"); // the sandbox's own is there before it
  const card = await p.innerText("article.card >> nth=0");
  ok(/api\.github\.com\/zen\/\*/.test(card) && /allow: "api\.github\.com\/zen\/\*"/.test(card) && /console/.test(card), "it becomes a proposal with its diff", card);
  const own = await p.innerText("article.card:has-text(\"own words\")");
  ok(/<img src=x onerror=alert\(1\)>/.test(own) && /asked by\s+site-builder/.test(own), "a sandbox's own is shown as its words, and as text", own);
  await shot(p, "proposals");
  await p.click("article.card:has-text(\"own words\") >> text=Reject");
  await p.waitForSelector("article.card:has-text(\"own words\"):has-text(\"rejected\")");
  await p.click("article.card:has-text(\"seen in the console\") >> text=Accept");
  await p.waitForSelector("article.card:has-text(\"durward proposals accept --write\")");
  const id = await p.getAttribute("article.card:has-text(\"seen in the console\")", "id");
  ok((await please("write", { id })).allowed, "written by the command, it is allowed");
  await p.keyboard.press("Escape");
  await p.keyboard.press("5");
  await p.waitForSelector(view + ".actions");
  if (await p.$(view + ">> text=Pause")) {
    const toast = p.waitForSelector(".toast:has-text(\"freezer\")", { timeout: 6000 }).then((e) => e.innerText(), () => "");
    await p.click(view + ">> text=Pause");
    const state = (await please("state", { id: box, until: ["paused", "running"] })).state;
    const said = state === "paused" ? "" : await toast;
    ok(state === "paused" || /freezer/.test(said), "Pause pauses it, or says why not", state, said);
    if (/freezer/.test(said)) // its answer is 501, which the browser calls an error
      problems.splice(0, problems.length, ...problems.filter((x) => !/501/.test(x)));
  }
  await p.click(view + ">> text=Kill…");
  await p.waitForSelector("dialog.question[open]");
  await p.click("dialog.question >> text=Leave it");
  ok((await please("state", { id: box })).state !== "", "Kill asks before");
  await p.click(view + ">> text=Kill…");
  await p.click("dialog.question >> text=End it");
  await p.waitForSelector(".toast:has-text(\"It was ended\")");
  eq((await please("state", { id: box })).state, "", "then it is ended");
  const token = await please("token");
  await p.keyboard.press("2");
  await p.keyboard.press("/");
  await p.keyboard.type("from-a-token");
  await p.click("main .view:not([hidden]) tbody tr:has-text(\"from-a-token\")");
  await p.click(".drawer >> text=Revoke token");
  await p.click("dialog.question >> text=Revoke it");
  await p.waitForSelector(".toast:has-text(\"revoked\")");
  eq((await please("token", token)).code, "token_revoked", "a token is revoked");
  await p.keyboard.press("Escape");
  await p.keyboard.press("Escape");
}

// The log from its index: a page that came after it all finds it, a filter that is kept, and a case.
async function history(p) {
  await p.reload();
  await p.waitForSelector(".app");
  await p.evaluate(() => document.activeElement?.blur());
  await p.keyboard.press("7");
  await p.selectOption("#h-span", "");
  await p.selectOption("#h-kind", "deny");
  await p.fill("#h-text", "gists");
  await p.keyboard.press("Enter");
  const rows = "main .view:not([hidden]) .attempt.row";
  await wait(p, (q) => document.querySelectorAll(q).length >= 3 && [...document.querySelectorAll(q)].every((r) => /gists/.test(r.innerText)), rows);
  ok(true, "history finds what was before the page");
  await p.click("#h-keep");
  await p.fill("#h-name", "gists <b>");
  await p.keyboard.press("Enter");
  await wait(p, () => document.querySelector("#h-kept").value === "gists <b>");
  await p.reload();
  await p.waitForSelector(".app");
  await p.evaluate(() => document.activeElement?.blur());
  await p.keyboard.press("7");
  await p.selectOption("#h-kept", "gists <b>");
  await wait(p, (q) => document.querySelectorAll(q).length >= 3 && [...document.querySelectorAll(q)].every((r) => /gists/.test(r.innerText)), rows);
  ok(await p.inputValue("#h-text") === "gists", "a filter that was saved comes back");
  await p.selectOption("#h-level", "critical");
  await wait(p, (q) => document.querySelectorAll(q).length === 0, rows);
  ok(true, "rows below a severity are left out");
  await p.selectOption("#h-level", "info");
  await shot(p, "history");
  await please("checkpoint");
  const [file] = await Promise.all([p.waitForEvent("download"), p.click("#h-case")]);
  await file.saveAs(`${folder}/case.json`);
  const verdict = await please("verify", { file: `${folder}/case.json` });
  ok(verdict.status === 0 && /good: \d+ records stand in the log/.test(verdict.said), "an exported case is verified by the command", verdict.said);
  await p.keyboard.press("Escape");
}

// A finding that was looked at: with a reason and an end it is left out of the first view, once
// somebody else accepted it; the log's history has it all the same.
async function suppress(p) {
  const view = "main .view:not([hidden]) ", row = view + "tbody tr:has-text(\"denied_by_rule\")";
  const none = (q) => wait(p, (x) => ![...document.querySelectorAll(x)].some((e) => /gists/.test(e.innerText)), q);
  const some = (q) => wait(p, (x) => [...document.querySelectorAll(x)].some((e) => /gists/.test(e.innerText)), q);
  await please("traffic");
  await p.keyboard.press("2");
  await p.click(row + " >> nth=0");
  await p.click(".drawer >> text=Suppress…");
  await p.waitForSelector("dialog.question[open]");
  eq(await p.inputValue("#suppress-host"), "api.github.com", "a refused row can be suppressed: its host");
  eq([await p.inputValue("#suppress-method"), await p.inputValue("#suppress-path")], ["POST", "/gists"], "its method and path");
  await axeOf(p, "the form of a suppression");
  await p.keyboard.press("Enter");
  ok(await p.$("dialog.question[open]"), "without a reason nothing is written");
  await p.fill("#suppress-reason", "seen <b>and</b> usual");
  await p.selectOption("#suppress-for", "2592000");
  await shot(p, "suppress");
  await p.keyboard.press("Enter");
  const card = "article.card:has-text(\"usual\")";
  await p.waitForSelector(card + ":has-text(\"hides nothing yet\")");
  const said = await p.innerText(card);
  ok(/open/.test(said) && /written by\s+console/.test(said) && /seen <b>and<\/b> usual/.test(said) && /coder/.test(said), "it is open, with who wrote it and why", said);
  ok(!(await p.$(card + " button:text-is(\"Accept\")")), "who wrote it in the console does not accept it there");
  await p.keyboard.press("Escape");
  await p.keyboard.press("2");
  await some(view + "tbody tr");
  ok(true, "it hides nothing yet");
  const id = (await please("accept")).id;
  await p.keyboard.press("s");
  await p.waitForSelector(`article.card#${id}:has-text("active")`);
  await axeOf(p, "suppressions");
  await shot(p, "suppressions");
  await p.evaluate(() => document.activeElement?.blur());
  await p.keyboard.press("2");
  await none(view + "tbody tr");
  ok(true, "accepted by the command, the blocked view leaves it out");
  const chip = view + ".chips button:has-text(\"suppressed (\")";
  await p.click(chip);
  await some(view + "tbody tr");
  ok(true, "and shows it where that is asked for");
  await p.click(chip);
  await none(view + "tbody tr");
  await p.evaluate(() => document.activeElement?.blur());
  await p.keyboard.press("1");
  await p.waitForSelector(view + ".attempt.row.bad");
  await none(view + ".attempt.row.bad");
  await p.click(chip);
  await some(view + ".attempt.row.suppressed");
  ok(true, "so does the live view");
  await p.click(chip);
  await p.evaluate(() => document.activeElement?.blur());
  await p.keyboard.press("7");
  await p.click("#h-search");
  await some(view + ".attempt.row.suppressed");
  ok(true, "the log's history has it, and says so");
  await p.evaluate(() => document.activeElement?.blur());
  await p.keyboard.press("s");
  await p.click(`article.card#${id} >> text=Lift`);
  await p.waitForSelector(`article.card#${id}:has-text("lifted by")`);
  await p.evaluate(() => document.activeElement?.blur());
  await p.keyboard.press("2");
  await some(view + "tbody tr");
  ok(true, "lifted, it is there again");
  await p.keyboard.press("Escape");
}

// What an accessibility checker finds in a view; nothing is wanted.
async function axeOf(p, what) {
  if (!(await p.evaluate(() => "axe" in window))) await p.evaluate(axeSource);
  const found = await p.evaluate(async () => (await axe.run(document, { resultTypes: ["violations"] })).violations.map((v) => `${v.id} (${v.impact}): ${v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + n.html.slice(0, 120)).join("; ")}`));
  eq(found, [], `axe finds nothing in ${what}`);
}

async function axe(p) {
  const views = await p.evaluate(() => [...document.querySelectorAll("nav a")].map((a) => a.hash.slice(1)));
  for (const theme of ["light", "dark"]) {
    await p.evaluate((x) => (document.documentElement.dataset.theme = x), theme);
    for (const view of views) {
      await p.evaluate((x) => app.show(x), view);
      await p.waitForTimeout(350); // each draws twice a second at most
      await axeOf(p, `${view}, ${theme}`);
    }
  }
  await p.evaluate(() => delete document.documentElement.dataset.theme);
  await p.evaluate(() => app.show("live"));
  await p.waitForSelector("main .view:not([hidden]) .attempt.row");
  await p.evaluate(() => document.querySelector("main .view:not([hidden]) .attempt.row").click());
  await axeOf(p, "an open record");
  await p.keyboard.press("Escape");
  await p.setViewportSize({ width: 390, height: 844 });
  for (const view of views) {
    await p.evaluate((x) => app.show(x), view);
    await p.waitForTimeout(350);
    const wide = await p.evaluate(() => document.documentElement.scrollWidth);
    ok(wide <= 390, `${view} fits 390 px`, wide);
    await shot(p, "narrow-" + view);
    await axeOf(p, `${view} at 390 px`);
  }
  await p.setViewportSize({ width: 1360, height: 860 });
}

// The whole log, asked for by keys; then with a byte of a closed file changed, and changed back.
async function whole(p) {
  const asked = async () => {
    await p.focus("#verify-whole");
    await p.keyboard.press("Enter");
    await wait(p, () => /not verified|records in/.test(document.querySelector(".whole-said").innerText), undefined, 60000);
    return p.innerText(".whole-said");
  };
  const good = await asked();
  ok(/The whole log is good/.test(good) && /\d+ records in [2-9] files/.test(good), "the whole log is verified on request", good);
  const file = (await please("spoil")).file;
  const bad = await asked();
  ok(/The log is broken/.test(bad) && bad.includes(file + ":"), "a changed byte of a closed file is told, and where", bad);
  await shot(p, "verify-broken");
  await please("mend");
  const again = await asked();
  ok(/The whole log is good/.test(again), "put back, it is good again", again);
}

async function tamper(p) {
  const r = await p.evaluate(async () => {
    const { Verifier } = await import("/verify.js");
    const hex = async (s) => [...new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(s)))].map((b) => b.toString(16).padStart(2, "0")).join("");
    const lines = [];
    let prev = "0".repeat(64);
    for (let i = 1; i <= 50; i++) {
      lines.push(`{"seq":${i},"prev":"${prev}","kind":"denied","id":"1-${i}","at":1,"time":"2026-01-01T00:00:00.000000000Z","path":"<img src=x onerror=alert(1)>"}`);
      prev = await hex(lines[i - 1]);
    }
    const judge = async (some) => {
      const v = new Verifier();
      v.add(some);
      while (v.busy) await new Promise((done) => setTimeout(done, 10));
      return [v.checked, v.gaps, v.broken.length];
    };
    const edited = lines.slice();
    edited[20] = edited[20].replace("denied", "dns");
    const cut = lines.slice(0, 20).concat(lines.slice(25));
    return [await judge(lines), await judge(edited), await judge(cut)];
  });
  eq(r, [[50, 0, 0], [49, 0, 1], [50 - 5, 1, 0]], "an edited line is an alarm, missing ones a gap");
}

// 10,000 records a second for some seconds, put in where the stream comes in.
async function flood(p) {
  const r = await p.evaluate(async () => {
    const s = app.store, before = Object.values(s.counts).reduce((a, b) => a + b, 0), skipped = s.skipped;
    const hex = "0".repeat(64);
    let n = 0, slowest = 0, last = performance.now(), frames = 0;
    const frame = () => {
      const now = performance.now();
      slowest = Math.max(slowest, now - last);
      last = now;
      frames++;
      if (n < 60000) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    const start = performance.now();
    while (n < 60000) {
      const lines = [];
      for (let i = 0; i < 500; i++, n++) {
        const kind = n % 3 === 0 ? "denied" : n % 3 === 1 ? "admitted" : "completed";
        const id = kind === "completed" ? n - 1 : n;
        lines.push(JSON.stringify({ seq: n, prev: hex, kind, id: "9-" + id, at: 1, time: new Date().toISOString().replace("Z", "000000Z"), role: "gate", sandbox: "sb-" + (n % 40), policy: "coder", authority: `h${n % 200}.example.com:443`, method: "GET", path: "/p/" + n, status: 200, bytes_up: 10, bytes_down: 1000, ms: 4, code: kind === "denied" ? "no_rule" : undefined }));
      }
      s.add(lines);
      await new Promise((done) => setTimeout(done, start + n / 10 - performance.now()));
    }
    while (s.queue.length) await new Promise((done) => setTimeout(done, 50));
    const after = Object.values(s.counts).reduce((a, b) => a + b, 0);
    return { exact: after - before, seconds: (performance.now() - start) / 1000, skipped: s.skipped - skipped, slowest, frames, rows: s.rows.length, drawn: document.querySelectorAll(".row").length };
  });
  eq(r.exact, 60000, "60,000 records at 10,000 a second: counted exactly");
  ok(r.drawn < 120, `of ${r.rows} rows ${r.drawn} exist`);
  ok(r.seconds < 15, `in ${r.seconds.toFixed(1)} s, ${r.skipped} counted but not shown, ${r.frames} frames, the longest ${Math.round(r.slowest)} ms`);
  const t0 = Date.now();
  await p.click("nav >> text=Blocked");
  await wait(p, () => !document.querySelector("main .view:not([hidden])").classList.contains("live"));
  await p.keyboard.press("1");
  ok(Date.now() - t0 < 3000, `and answers to clicks (${Date.now() - t0} ms)`);
  await shot(p, "flood");
}

try {
  const p = await flows();
  await flood(p);
  const foreign = requests.filter((u) => !u.startsWith(where + "/") && !u.startsWith("data:"));
  eq(foreign, [], "no request went anywhere else");
  eq(problems, [], "no error on the page, nothing against its policy");
} catch (e) {
  ok(false, "the flows ran to their end", e.stack, ...problems);
  for (const c of browser.contexts()) for (const p of c.pages()) await shot(p, "failed").catch(() => {});
}
await browser.close();
say({ done: true });
process.exit(0);
