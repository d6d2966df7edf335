// The console's history in a real Chromium: how long a search takes, and the case of what it found. argv: MODULES
// CHROMIUM FOLDER LINK TEXT. Prints one JSON line.
import { createRequire } from "node:module";

const [modules, chromium, folder, link, text] = process.argv.slice(2);
const { chromium: browserType } = createRequire(modules + "/")("playwright-core");
const browser = await browserType.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
const p = await (await browser.newContext({ viewport: { width: 1360, height: 860 }, acceptDownloads: true })).newPage();
const rows = "main .view:not([hidden]) .attempt.row";
await p.goto(link);
await p.waitForSelector(".app");
await p.evaluate(() => document.activeElement?.blur());
await p.keyboard.press("7");
await p.selectOption("#h-span", "7d");

// Until the page says what it found; -> milliseconds.
async function search(words) {
  await p.fill("#h-text", words);
  const began = Date.now();
  await p.click("#h-search");
  await p.waitForFunction(() => /rows? of|Nothing in the log fits/.test(document.querySelector("main .view:not([hidden]) [role=status]").innerText), undefined, { timeout: 60000 });
  return Date.now() - began;
}

const search_ms = await search(text);
const found = await p.$$eval(rows, (list) => list.map((e) => e.innerText));
await p.screenshot({ path: `${folder}/found.png` });
const began = Date.now();
const [file] = await Promise.all([p.waitForEvent("download", { timeout: 60000 }), p.click("#h-case")]);
await file.saveAs(`${folder}/case.json`);
const case_ms = Date.now() - began;
const nothing_ms = await search("nowhere-" + text);
const none = await p.$$eval(rows, (list) => list.length);
await browser.close();
console.log(JSON.stringify({ rows: found, search: search_ms, case: case_ms, nothing: nothing_ms, rare: none }));
