// A vendor's own library for Node, as its documents begin: library.mjs MODULES NAME PACKAGE TURNS KEY. As library.py: one
// client makes TURNS turns, each answer is looked at. Prints {"turns": N, "version": ..., "seconds": ...} as JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, name, pkg, turns, key] = process.argv.slice(2);
const load = createRequire(modules + "/library.js");
const TEXT = "The door is kept.";
const SAY = [{ role: "user", content: "Is the door kept?" }];

function same(got, want = TEXT) {
  if (JSON.stringify(got) !== JSON.stringify(want))
    throw new Error(`${JSON.stringify(got)} instead of ${JSON.stringify(want)}`);
}

// A class that is what the module is, its default or a member of it.
const of = (what, member) => load(what)[member] ?? load(what).default ?? load(what);

async function joined(parts, text) {
  let all = "";
  for await (const p of parts) all += text(p) ?? "";
  return all;
}

// Calls of a client that is made as OpenAI's.
const chats = (c) => async () => {
  same((await c.chat.completions.create({ model: "m", messages: SAY })).choices[0].message.content);
  const parts = await c.chat.completions.create({ model: "m", messages: SAY, stream: true });
  same(await joined(parts, (p) => p.choices[0]?.delta?.content));
};

const aws = { region: "eu-west-1", credentials: { accessKeyId: key, secretAccessKey: "x" } };
const mail = { from: "a@b.example", to: "c@d.example", subject: "door", text: "shut" };

const APIS = {
  // ---- models ----
  openai() {
    const c = new (of("openai", "OpenAI"))({ apiKey: key });
    const talk = chats(c);
    return async () => {
      await talk();
      same((await c.models.list()).data[0].id, "m");
      same((await c.embeddings.create({ model: "m", input: "door" })).data[0].embedding, [0.5, 0.25]);
    };
  },
  anthropic() {
    const c = new (of("@anthropic-ai/sdk", "Anthropic"))({ apiKey: key });
    const ask = { model: "m", max_tokens: 9, messages: SAY };
    return async () => {
      same((await c.messages.create(ask)).content[0].text);
      same(await c.messages.stream(ask).finalText());
    };
  },
  genai() {
    const c = new (load("@google/genai").GoogleGenAI)({ apiKey: key });
    return async () => {
      same((await c.models.generateContent({ model: "m", contents: "?" })).text);
      same(await joined(await c.models.generateContentStream({ model: "m", contents: "?" }), (p) => p.text));
    };
  },
  async mistral() {
    const { Mistral } = await imported("@mistralai/mistralai");
    const c = new Mistral({ apiKey: key });
    return async () => {
      same((await c.chat.complete({ model: "m", messages: SAY })).choices[0].message.content);
      same(await joined(await c.chat.stream({ model: "m", messages: SAY }), (e) => e.data.choices[0].delta.content));
    };
  },
  cohere() {
    const c = new (load("cohere-ai").CohereClientV2)({ token: key });
    return async () => same((await c.chat({ model: "m", messages: SAY })).message.content[0].text);
  },
  huggingface() {
    const c = new (load("@huggingface/inference").InferenceClient)(key, { endpointUrl: "https://router.huggingface.co" });
    return async () => same((await c.chatCompletion({ model: "m", messages: SAY })).choices[0].message.content);
  },
  groq: () => chats(new (of("groq-sdk", "Groq"))({ apiKey: key })),
  together: () => chats(new (of("together-ai", "Together"))({ apiKey: key })),
  cerebras: () => chats(new (of("@cerebras/cerebras_cloud_sdk", "Cerebras"))({ apiKey: key })),
  replicate() {
    const c = new (of("replicate", "Replicate"))({ auth: key });
    return async () => same((await c.models.get("acme", "door")).description);
  },
  deepgram() {
    const { DeepgramClient } = load("@deepgram/sdk");
    const c = new DeepgramClient({ apiKey: key });
    return async () => {
      const said = await c.listen.v1.media.transcribeUrl({ url: "https://x.example/a.wav", model: "nova-3" });
      same(said.results.channels[0].alternatives[0].transcript);
    };
  },
  assemblyai() {
    const c = new (load("assemblyai").AssemblyAI)({ apiKey: key });
    return async () => same((await c.transcripts.transcribe({ audio: "https://x.example/a.mp3" })).text);
  },
  fal() {
    const { createFalClient } = load("@fal-ai/client");
    const c = createFalClient({ credentials: key });
    return async () => same((await c.run("acme/door", { input: { prompt: "door" } })).data.text);
  },
  async "ai-openai"() {
    const { createOpenAI } = await imported("@ai-sdk/openai");
    const { generateText, streamText } = await imported("ai");
    const model = createOpenAI({ apiKey: key }).chat("m");
    return async () => {
      same((await generateText({ model, prompt: "?" })).text);
      same(await joined(streamText({ model, prompt: "?" }).textStream, (p) => p));
    };
  },
  async "ai-anthropic"() {
    const { createAnthropic } = await imported("@ai-sdk/anthropic");
    const { generateText } = await imported("ai");
    const model = createAnthropic({ apiKey: key })("m");
    return async () => same((await generateText({ model, prompt: "?" })).text);
  },
  async langchain() {
    const { ChatOpenAI } = await imported("@langchain/openai");
    const c = new ChatOpenAI({ model: "m", apiKey: key });
    return async () => same((await c.invoke("Is the door kept?")).content);
  },

  // ---- what agents search and remember with ----
  tavily() {
    const c = load("@tavily/core").tavily({ apiKey: key });
    return async () => same((await c.search("Who keeps the door?")).results[0].title);
  },
  exa() {
    const c = new (of("exa-js", "Exa"))(key);
    return async () => same((await c.search("door")).results[0].title);
  },
  pinecone() {
    const c = new (load("@pinecone-database/pinecone").Pinecone)({ apiKey: key });
    return async () => same((await c.listIndexes()).indexes, []);
  },
  qdrant() {
    const c = new (load("@qdrant/js-client-rest").QdrantClient)({ url: "https://qdrant.example.com", port: 443, apiKey: key });
    return async () => same((await c.getCollections()).collections[0].name, "door");
  },
  langsmith() {
    const c = new (load("langsmith").Client)({ apiKey: key });
    return async () => same(await joined(c.listDatasets({ limit: 1 }), (d) => d.name));
  },
  upstash() {
    const c = new (load("@upstash/redis").Redis)({ url: "https://door.upstash.io", token: key });
    return async () => same(await c.set("door", "shut"), "OK");
  },

  // ---- clouds ----
  s3() {
    const { S3Client, PutObjectCommand, GetObjectCommand, ListObjectsV2Command } = load("@aws-sdk/client-s3");
    const c = new S3Client(aws);
    return async (n) => {
      await c.send(new PutObjectCommand({ Bucket: "acme", Key: `door/${n}.txt`, Body: "shut\n".repeat(n) }));
      same(await (await c.send(new GetObjectCommand({ Bucket: "acme", Key: "door.txt" }))).Body.transformToString());
      same((await c.send(new ListObjectsV2Command({ Bucket: "acme" }))).Contents[0].Key, "door.txt");
    };
  },
  dynamodb() {
    const { DynamoDBClient, GetItemCommand } = load("@aws-sdk/client-dynamodb");
    const c = new DynamoDBClient(aws);
    return async () => same((await c.send(new GetItemCommand({ TableName: "doors", Key: { id: { S: "1" } } }))).Item.text.S);
  },
  "google-storage"() {
    const { Storage } = load("@google-cloud/storage");
    const { OAuth2Client } = createRequire(load.resolve("@google-cloud/storage"))("google-auth-library");
    const authClient = new OAuth2Client();
    authClient.setCredentials({ access_token: key, expiry_date: Date.now() + 3600000 });
    const bucket = new Storage({ projectId: "acme", authClient }).bucket("acme");
    return async () => same((await bucket.getFiles())[0][0].name, "door.txt");
  },
  "azure-identity"() {
    const { ClientSecretCredential } = load("@azure/identity");
    return async () => {
      const c = new ClientSecretCredential("acme", "door", key);
      same((await c.getToken("https://vault.azure.net/.default")).token, "token-of-the-double");
    };
  },
  vault() {
    const c = of("node-vault")({ endpoint: "https://vault.example.com", token: key });
    return async () => same((await c.read("secret/data/door")).data.data.answer);
  },
  elasticsearch() {
    const c = new (load("@elastic/elasticsearch").Client)({ node: "https://elastic.example.com", auth: { apiKey: key } });
    return async () => same((await c.info()).cluster_name);
  },

  // ---- code and issues ----
  async github() {
    const { Octokit } = await imported("octokit");
    const c = new Octokit({ auth: key, throttle: { enabled: false } });
    return async () => {
      same((await c.rest.users.getAuthenticated()).data.bio);
      same((await c.rest.issues.get({ owner: "acme", repo: "door", issue_number: 7 })).data.title);
      same((await c.rest.issues.create({ owner: "acme", repo: "door", title: "hinge" })).data.number, 8);
    };
  },
  async gitlab() {
    const { Gitlab } = await imported("@gitbeaker/rest");
    const c = new Gitlab({ token: key });
    return async () => same((await c.Projects.show(1)).description);
  },
  linear() {
    const c = new (load("@linear/sdk").LinearClient)({ apiKey: key });
    return async () => same((await c.viewer).name);
  },

  // ---- work, money, messages ----
  "sentry-public"() {
    const s = load("@sentry/node");
    s.init({ dsn: `https://${key}@o2.ingest.sentry.io/1` });
    return async (n) => {
      s.captureMessage("door " + n);
      same(await s.flush(10000), true);
    };
  },
  stripe() {
    const c = new (of("stripe", "Stripe"))(key);
    return async () => {
      same((await c.customers.create({ name: "Ann", email: "ann@acme.example" })).name);
      same((await c.customers.retrieve("cus_1")).name);
    };
  },
  slack() {
    const c = new (load("@slack/web-api").WebClient)(key);
    return async () => {
      same((await c.auth.test()).team);
      same((await c.chat.postMessage({ channel: "C1", text: "door" })).message.text);
    };
  },
  twilio() {
    const c = of("twilio")("AC" + "1".repeat(32), key);
    return async () => same((await c.messages.create({ to: "+15550100", from: "+15550101", body: "door" })).body);
  },
  sendgrid() {
    const c = of("@sendgrid/mail");
    c.setApiKey(key);
    return async () => same((await c.send(mail))[0].statusCode, 202);
  },
  resend() {
    const c = new (load("resend").Resend)(key);
    return async () => same((await c.emails.send(mail)).data.id, "1");
  },
  async mailgun() {
    const Mailgun = of("mailgun.js");
    const c = new Mailgun(FormData).client({ username: "api", key });
    return async () => same((await c.messages.create("acme.example", mail)).message, "Queued.");
  },
  postmark() {
    const c = new (load("postmark").ServerClient)(key);
    return async () =>
      same((await c.sendEmail({ From: "a@b.example", To: "c@d.example", Subject: "door", TextBody: "shut" })).MessageID, "1");
  },
  telegram() {
    const { Api } = load("grammy");
    const c = new Api(key);
    return async () => {
      same((await c.getMe()).first_name);
      same((await c.sendMessage(1, "door")).text);
    };
  },
  discord() {
    const c = new (load("@discordjs/rest").REST)({ version: "10" }).setToken(key);
    return async () => same((await c.get("/users/@me")).username);
  },
  notion() {
    const c = new (load("@notionhq/client").Client)({ auth: key });
    return async () => same((await c.users.list({})).results[0].name);
  },
  airtable() {
    const base = new (of("airtable"))({ apiKey: key }).base("app1");
    return async () => same((await base("Doors").select({ maxRecords: 1 }).firstPage())[0].get("Name"));
  },
  dropbox() {
    const c = new (load("dropbox").Dropbox)({ accessToken: key });
    return async () => same((await c.checkUser({ query: TEXT })).result.result);
  },
  algolia() {
    const c = load("algoliasearch").algoliasearch("ACME1", key);
    return async () => same((await c.listIndices()).items[0].name);
  },
  supabase() {
    const c = load("@supabase/supabase-js").createClient("https://acme.supabase.co", key, { realtime: { transport: class {} } });
    return async () => same((await c.from("doors").select()).data?.[0].name);
  },
  contentful() {
    const c = load("contentful").createClient({ space: "acme", accessToken: key });
    return async () => same((await c.getEntries({ limit: 1 })).items[0].fields.name);
  },
  intercom() {
    const c = new (load("intercom-client").IntercomClient)({ token: key });
    return async () => same((await c.admins.identify()).name);
  },
};

async function imported(what) {
  return load(what);
}

const began = Date.now();
const turn = await APIS[name]();
for (let n = 1; n <= Number(turns); n++) await turn(n);
const { version } = JSON.parse(readFileSync(`${modules}/node_modules/${pkg}/package.json`, "utf8"));
console.log(JSON.stringify({ turns: Number(turns), version, seconds: (Date.now() - began) / 1000 }));
process.exit(0);
