// The behaviours that LangChain's standard tests of JavaScript sandboxes ask for, by their names, tested in our
// words on a sandbox of the daemon at DURWARD_SOCKET.
import assert from "node:assert/strict";

import { DurwardSandbox } from "durward/deepagents";

import { behaviour, runAll } from "./report.mjs";

const at = (name) => "/workspace/" + name;
const bytes = (text) => new TextEncoder().encode(text);
const ok = (r) => (assert.equal(r.error, undefined), r);
const box = await DurwardSandbox.create({ policy: "p" });
const sh = async (command) => {
  const r = await box.execute(command);
  assert.equal(r.exitCode, 0, r.output);
  return r.output;
};
/** Write, and what lies there then. */
const written = async (path, text) => {
  const r = ok(await box.write(path, text));
  assert.equal(r.path, path);
  return new TextDecoder().decode((await box.downloadFiles([path]))[0].content);
};
const tree = async (name, files) => {
  for (const [path, text] of Object.entries(files)) ok(await box.write(`${at(name)}/${path}`, text));
  return at(name);
};
const rows = (n) => Array.from({ length: n }, (_, i) => `row ${i + 1};`);
const content = async (path, ...range) => ok(await box.read(path, ...range)).content ?? "";
const only = (text, present, absent) => {
  for (const p of present) assert.ok(text.includes(p), `${p} is not in ${text.slice(0, 300)}`);
  for (const a of absent) assert.ok(!text.includes(a), `${a} is in ${text.slice(0, 300)}`);
};

function group(name, tests) {
  for (const [what, run] of Object.entries(tests)) behaviour(`${name}: should ${what}`, run);
}

/** A sandbox of its own, with files, for one test. */
const fresh = (initialFiles, use) => async () => {
  const other = await DurwardSandbox.create({ policy: "p", initialFiles });
  try {
    assert.equal(other.isRunning, true);
    await use(other);
  } finally {
    await other.close();
  }
};

group("sandbox lifecycle", {
  "create sandbox and have a valid id": () => assert.match(box.id, /^[a-z0-9-]{1,64}$/),
  "have isRunning as true after creation": () => assert.equal(box.isRunning, true),
  "close sandbox successfully": async () => {
    const other = await DurwardSandbox.create({ policy: "p" });
    await other.close();
    assert.equal(other.isRunning, false);
    await assert.rejects(DurwardSandbox.fromId(other.id), { name: "NotFound" });
  },
  "work with two-step initialization": async () => {
    const other = new DurwardSandbox({ policy: "p" });
    assert.equal(other.isRunning, false);
    assert.notEqual(other.id, "");
    await assert.rejects(other.execute("true"), { code: "NOT_INITIALIZED" });
    await other.initialize();
    try {
      assert.equal(other.isRunning, true);
      assert.equal((await other.execute("echo in")).output, "in\n");
      await assert.rejects(other.initialize(), { code: "ALREADY_INITIALIZED" });
    } finally {
      await other.close();
    }
  },
});

group("command execution", {
  "run a simple echo command": async () =>
    assert.deepEqual(await box.execute('echo "a word"'), { output: "a word\n", exitCode: 0, truncated: false }),
  "capture non-zero exit code": async () => assert.equal((await box.execute("exit 42")).exitCode, 42),
  "capture multiline output": async () => assert.equal(await sh("printf '1\\n2\\n3\\n'"), "1\n2\n3\n"),
  "capture stderr output": async () => assert.equal(await sh("echo out; echo err >&2"), "out\nerr\n"),
  "handle command with environment variables": async () =>
    assert.equal(await sh("export A='b c' && echo \"$A\""), "b c\n"),
  "handle non-existent command": async () => assert.equal((await box.execute("no_such_command_7")).exitCode, 127),
});

group("file operations", {
  "upload files to sandbox": async () => {
    assert.deepEqual(await box.uploadFiles([[at("up"), bytes("sent")]]), [{ path: at("up"), error: null }]);
    assert.equal(await sh(`cat ${at("up")}`), "sent");
  },
  "download files from sandbox": async () => {
    await sh(`printf 'a\\000\\377' > ${at("down")}`);
    const [r] = await box.downloadFiles([at("down")]);
    assert.equal(r.error, null);
    assert.deepEqual([...r.content], [97, 0, 255]);
  },
  "handle file not found on download": async () =>
    assert.deepEqual(await box.downloadFiles([at("none")]), [{ path: at("none"), content: null, error: "file_not_found" }]),
  "use inherited read method from BaseSandbox": async () => {
    await box.uploadFiles([[at("r"), bytes("to be read")]]);
    only(await content(at("r")), ["to be read"], []);
  },
  "use inherited write method from BaseSandbox": async () =>
    assert.equal(await written(at("w"), "as written"), "as written"),
  "use inherited edit method from BaseSandbox": async () => {
    await written(at("e"), "old words");
    ok(await box.edit(at("e"), "old words", "new words"));
    assert.equal(await sh(`cat ${at("e")}`), "new words");
  },
  "upload multiple files at once": async () => {
    const files = ["m1", "m2", "m3"].map((n) => [at(n), bytes(n + ";")]);
    assert.deepEqual(await box.uploadFiles(files), files.map(([path]) => ({ path, error: null })));
    assert.equal(await sh(`cat ${files.map(([p]) => p).join(" ")}`), "m1;m2;m3;");
  },
});

const writes = {
  "write a new file with basic content": ["wt/new", "one\ntwo\nthree"],
  "create parent directories automatically": ["wt/a/b/c/d", "deep"],
  "handle special characters and escape sequences": ["wt/special", "$V `c` $(s) \\ \t \" ' %s \u0001"],
  "write an empty file": ["wt/empty", ""],
  "write a file with spaces in the path": ["wt/a dir/a file", "spaced"],
  "write unicode content": ["wt/unicode", "\u00e9 \u4e16\u754c \u041f\u0440 \u0645 \u{1f44b}\n\u{1f30d}"],
  "write very long content (1000 lines)": ["wt/long", rows(1000).join("\n")],
  "write content with only newlines": ["wt/newlines", "\n\n\n\n\n"],
};
for (const [what, [path, text]] of Object.entries(writes))
  behaviour(`write: should ${what}`, async () => assert.equal(await written(at(path), text), text));
group("write", {
  "overwrite an existing file": async () => {
    await written(at("wt/over"), "the first, longer");
    assert.equal(await written(at("wt/over"), "second"), "second");
  },
  "handle consecutive slashes in path": async () => {
    await written(at("wt//slashes///f"), "there");
    assert.equal(await sh(`cat ${at("wt/slashes/f")}`), "there");
  },
});

/** Ten or more rows, a window on them, what is in it and what is not. */
const windows = {
  "read a file with line numbers": [3, [], [1, 2, 3], [4]],
  "read with offset parameter": [10, [5], [6, 10], [1, 5]],
  "read with limit parameter": [100, [0, 5], [1, 5], [6, 100]],
  "read with both offset and limit": [20, [10, 5], [11, 15], [10, 16]],
  "return nothing with limit=0": [3, [0, 0], [], [1, 2, 3]],
};
for (const [what, [n, range, present, absent]] of Object.entries(windows))
  behaviour(`read: should ${what}`, async () => {
    await written(at("rd/rows"), rows(n).join("\n"));
    only(await content(at("rd/rows"), ...range), present.map((i) => `row ${i};`), absent.map((i) => `row ${i};`));
  });
group("read", {
  "return error for nonexistent file": async () => assert.match((await box.read(at("rd/none"))).error, /not found/i),
  "handle reading an empty file": async () => {
    await written(at("rd/empty"), "");
    ok(await box.read(at("rd/empty")));
  },
  "read unicode content": async () => {
    await written(at("rd/unicode"), "\u{1f44b} \u4e16\n\u041f\u0440");
    only(await content(at("rd/unicode")), ["\u{1f44b} \u4e16", "\u041f\u0440"], []);
  },
  "handle files with very long lines": async () => {
    await written(at("rd/wide"), `short\n${"x".repeat(9000)}\nafter`);
    only(await content(at("rd/wide")), ["short", "xxx", "after"], []);
  },
  "handle offset beyond file length": async () => {
    await written(at("rd/beyond"), rows(3).join("\n"));
    only((await box.read(at("rd/beyond"), 100, 10)).content ?? "", [], ["row"]);
  },
  "handle offset exactly at file length": async () => {
    await written(at("rd/exact"), rows(5).join("\n"));
    only((await box.read(at("rd/exact"), 5, 10)).content ?? "", [], ["row"]);
  },
  "read a large file in chunks": async () => {
    await written(at("rd/chunks"), rows(1000).join("\n"));
    for (let from = 0; from < 1000; from += 100)
      only(await content(at("rd/chunks"), from, 100), [`row ${from + 1};`, `row ${from + 100};`],
        [`row ${from};`, `row ${from + 101};`]);
  },
});

/** Before, old, new, all?, after, occurrences. */
const edits = {
  "edit a single occurrence": ["a b\nc d", "c", "C", false, "a b\nC d", 1],
  "replace all occurrences with replaceAll=true": ["x y x y x", "x", "z", true, "z y z y z", 3],
  "handle special characters and regex metacharacters": ["$1 [a-z]* \\d ^", "[a-z]* \\d", "$& $1 \\0", false, "$1 $& $1 \\0 ^", 1],
  "handle multiline string replacement": ["1\n2\n3", "1\n2", "both", false, "both\n3", 1],
  "delete content by replacing with empty string": ["keep\ndrop\nkeep", "drop\n", "", false, "keep\nkeep", 1],
  "handle identical old and new strings": ["same", "same", "same", false, "same", 1],
  "handle unicode content": ["a \u{1f44b} \u4e16", "\u{1f44b}", "\u{1f30d}", false, "a \u{1f30d} \u4e16", 1],
  "handle whitespace-only strings": ["a    b", "    ", " ", false, "a b", 1],
  "handle very long old and new strings": [`<${"x".repeat(90000)}>`, "x".repeat(90000), "y".repeat(90000), false, `<${"y".repeat(90000)}>`, 1],
  "preserve line endings correctly": ["1\r\n2\r\n3\n", "2", "two", false, "1\r\ntwo\r\n3\n", 1],
  "edit a substring within a line": ["the brown fox runs", "brown fox", "red cat", false, "the red cat runs", 1],
};
for (const [what, [before, old, next, all, after, n]] of Object.entries(edits))
  behaviour(`edit: should ${what}`, async () => {
    await written(at("ed"), before);
    assert.equal(ok(await box.edit(at("ed"), old, next, all)).occurrences, n);
    assert.equal(new TextDecoder().decode((await box.downloadFiles([at("ed")]))[0].content), after);
  });
group("edit", {
  "fail with multiple occurrences without replaceAll": async () => {
    await written(at("ed"), "x y x");
    assert.match((await box.edit(at("ed"), "x", "z")).error, /multiple/i);
    assert.equal(await sh(`cat ${at("ed")}`), "x y x");
  },
  "return error when string is not found": async () => {
    await written(at("ed"), "x");
    assert.match((await box.edit(at("ed"), "absent", "z")).error, /not found/i);
  },
  "return error for nonexistent file": async () =>
    assert.match((await box.edit(at("ed-none"), "a", "b")).error, /not found/i),
});

const listed = async (path) => ok(await box.ls(path)).files.map((f) => f.path.replace(/\/$/, "")).sort();
/** The files made in a directory of their own, listed by absolute paths. */
const listings = {
  "return absolute paths": ["f"],
  "include hidden files": [".hidden", "shown"],
  "handle directories with spaces in names": ["a dir/f", "a file"],
  "handle unicode filenames": ["\u6d4b\u8bd5", "\u0444\u0430"],
  "handle special characters in filenames": ["f(1)", "f-2", "f'3", "f$4"],
};
for (const [what, names] of Object.entries(listings))
  behaviour(`ls: should ${what}`, async () => {
    const dir = await tree("li " + what, Object.fromEntries(names.map((n) => [n, "x"])));
    assert.deepEqual(await listed(dir), names.map((n) => `${dir}/${n.split("/")[0]}`).sort());
  });
group("ls", {
  "list files and subdirectories": async () => {
    const dir = await tree("li", { f: "1", "sub/g": "2" });
    const files = ok(await box.ls(dir)).files;
    assert.deepEqual(files.map((f) => [f.path, f.is_dir]).sort(), [[`${dir}/f`, false], [`${dir}/sub/`, true]]);
  },
  "return empty list for empty directory": async () => {
    await sh(`mkdir ${at("li-empty")}`);
    assert.deepEqual(await listed(at("li-empty")), []);
  },
  "return empty list for nonexistent directory": async () => assert.deepEqual(await listed(at("li-none")), []),
  "handle large directories": async () => {
    await sh(`mkdir ${at("li-large")} && cd ${at("li-large")} && touch $(seq -w 0 499)`);
    assert.equal((await listed(at("li-large"))).length, 500);
  },
  "handle trailing slash in path": async () => {
    const dir = await tree("li-slash", { f: "x" });
    assert.equal((await listed(dir + "/")).length, 1);
  },
});

const found = async (dir, ...what) =>
  ok(await box.grep(what[0], dir, ...what.slice(1))).matches
    .map((m) => `${m.path.slice(dir.length + 1)}:${m.line}:${m.text}`).sort();
/** Files, what is looked for, what is found: file:line:text. */
const greps = {
  "find basic literal pattern matches": [{ a: "Hello x\nbye", b: "Hello y" }, ["Hello"], ["a:1:Hello x", "b:1:Hello y"]],
  "filter files with glob pattern": [{ "a.py": "hit", "a.txt": "hit" }, ["hit", "*.py"], ["a.py:1:hit"]],
  "return empty matches when no matches found": [{ a: "b" }, ["absent"], []],
  "find multiple matches in a single file": [{ a: "x\ny\nx\ny\nx" }, ["x"], ["a:1:x", "a:3:x", "a:5:x"]],
  "match literal strings not regex": [{ a: "a.c\nabc" }, ["a.c"], ["a:1:a.c"]],
  "find unicode patterns": [{ a: "x\n\u4e16\u754c!" }, ["\u4e16\u754c"], ["a:2:\u4e16\u754c!"]],
  "be case-sensitive by default": [{ a: "Hello\nhello\nHELLO" }, ["Hello"], ["a:1:Hello"]],
  "handle special characters as literals": [{ a: "-e $1 [a-z]* 'q'\n$2" }, ["-e $1 [a-z]* 'q'"], ["a:1:-e $1 [a-z]* 'q'"]],
  "search recursively across nested directories": [{ a: "t", "s/b": "t", "s/s/c": "t" }, ["t"], ["a:1:t", "s/b:1:t", "s/s/c:1:t"]],
  "report correct line numbers": [{ a: rows(100).join("\n") }, ["row 50;"], ["a:50:row 50;"]],
};
for (const [what, [files, asked, expected]] of Object.entries(greps))
  behaviour(`grep: should ${what}`, async () =>
    assert.deepEqual(await found(await tree("gr " + what, files), ...asked), expected));
behaviour("grep: should return empty matches for empty directory", async () => {
  await sh(`mkdir ${at("gr-empty")}`);
  assert.deepEqual(await found(at("gr-empty"), "x"), []);
});

/** Files, a pattern, what fits: relative paths; a directory ends in a slash. */
const globs = {
  "match basic wildcard pattern": [["a.txt", "b.txt", "c.py"], "*.txt", ["a.txt", "b.txt"]],
  "match recursive pattern (**)": [["r.txt", "s/a.txt", "s/t/b.txt", "s/c.py"], "**/*.txt", ["r.txt", "s/a.txt", "s/t/b.txt"]],
  "return empty array when no matches": [["a.txt"], "*.py", []],
  "include directories in results": [["d/f", "e/f", "g"], "*", ["d/", "e/", "g"]],
  "match specific file extensions": [["a.py", "a.pyc", "a.md"], "*.py", ["a.py"]],
  "match hidden files explicitly": [[".h1", ".h2", "shown"], ".*", [".h1", ".h2"]],
  "match character class patterns": [["f1", "f2", "f3", "fA"], "f[1-2]", ["f1", "f2"]],
  "match single character wildcard (?)": [["f1", "f2", "f10"], "f?", ["f1", "f2"]],
  "match multiple extensions separately": [["f.a", "f.b", "f.c"], "*.b", ["f.b"]],
  "match deeply nested patterns": [["a/b/c/d/deep", "a/b/other"], "**/deep", ["a/b/c/d/deep"]],
};
for (const [what, [names, pattern, expected]] of Object.entries(globs))
  behaviour(`glob: should ${what}`, async () => {
    const dir = await tree("gl " + what, Object.fromEntries(names.map((n) => [n, "x"])));
    const files = ok(await box.glob(pattern, dir)).files;
    assert.deepEqual(files.map((f) => f.path.replace(/\/?$/, f.is_dir ? "/" : "")).sort(), expected);
  });

const put = { [at("init/f.txt")]: "first", [at("init/a/b/c.tsx")]: "<b>deep</b>", [at("init/run.sh")]: "#!/bin/sh\necho ran" };
const initial = {
  "create sandbox with initial files": [put, async (b) =>
    assert.equal((await b.execute(`cat ${at("init/f.txt")}`)).output, "first")],
  "create sandbox with deeply nested initial files": [put, async (b) =>
    assert.equal((await b.execute(`cat ${at("init/a/b/c.tsx")}`)).output, "<b>deep</b>")],
  "create sandbox with empty initialFiles object": [{}, async (b) =>
    assert.equal((await b.execute("echo works")).output, "works\n")],
  "make initialFiles accessible via read()": [put, async (b) =>
    only(ok(await b.read(at("init/f.txt"))).content, ["first"], [])],
  "make initialFiles accessible via downloadFiles()": [put, async (b) =>
    assert.deepEqual([...(await b.downloadFiles([at("init/f.txt")]))[0].content], [...bytes("first")])],
  "execute a script created via initialFiles": [put, async (b) =>
    assert.deepEqual(await b.execute(`sh ${at("init/run.sh")}`), { output: "ran\n", exitCode: 0, truncated: false })],
  "make initialFiles in subdirectories visible via ls()": [put, async (b) =>
    assert.deepEqual(ok(await b.ls(at("init"))).files.map((f) => f.path).sort(),
      ["a/", "f.txt", "run.sh"].map((n) => at("init/" + n)))],
};
for (const [what, [files, use]] of Object.entries(initial))
  behaviour(`initialFiles: should ${what}`, fresh(files, use));

group("integration workflows", {
  "complete a write-read-edit-read workflow": async () => {
    await written(at("in"), "the first words");
    only(await content(at("in")), ["the first words"], []);
    ok(await box.edit(at("in"), "first", "second"));
    only(await content(at("in")), ["the second words"], ["first"]);
  },
  "handle complex directory operations": async () => {
    const dir = await tree("in-tree", { "r.txt": "a file", "s/1.txt": "file 1", "s/2.py": "file 2", "t/3.txt": "file 3" });
    assert.deepEqual(await listed(dir), [`${dir}/r.txt`, `${dir}/s`, `${dir}/t`]);
    assert.equal(ok(await box.glob("**/*.txt", dir)).files.length, 3);
    assert.equal((await found(dir, "file")).length, 4);
  },
});

try {
  await runAll();
} finally {
  await box.close();
}
