// A vendor's own library for Java, as its documents begin: Library API ARTIFACT TURNS KEY. As library.py: one client makes
// TURNS turns, each answer is looked at. Prints {"turns": N, "version": ...} as JSON.
import com.anthropic.client.okhttp.AnthropicOkHttpClient;
import com.azure.core.credential.TokenRequestContext;
import com.azure.identity.ClientSecretCredentialBuilder;
import com.google.auth.oauth2.UserCredentials;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.slack.api.Slack;
import com.stripe.StripeClient;
import com.stripe.param.CustomerCreateParams;
import dev.langchain4j.model.openai.OpenAiChatModel;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.minio.ListBucketsArgs;
import io.minio.MinioClient;
import io.sentry.Sentry;
import java.io.File;
import java.util.Map;
import java.util.Objects;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import org.kohsuke.github.GitHubBuilder;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.bedrockruntime.BedrockRuntimeClient;
import software.amazon.awssdk.services.bedrockruntime.model.ContentBlock;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.sts.StsClient;

public final class Library {
    private static final String TEXT = "The door is kept.", QUESTION = "Is the door kept?";

    private interface Turn {
        void make(int n) throws Exception;
    }

    private interface Use {
        Turn of(String key) throws Exception;
    }

    private static void same(Object got, Object want) {
        if (!Objects.equals(got, want))
            throw new IllegalStateException(got + " instead of " + want);
    }

    private static final Map<String, Use> APIS = Map.ofEntries(
        Map.entry("openai", Library::openai), Map.entry("anthropic", Library::anthropic), Map.entry("genai", Library::genai),
        Map.entry("langchain", Library::langchain), Map.entry("s3", Library::s3), Map.entry("sts", Library::sts),
        Map.entry("bedrock", Library::bedrock), Map.entry("minio", Library::minio),
        Map.entry("google-auth", Library::googleAuth), Map.entry("azure-identity", Library::azureIdentity),
        Map.entry("kubernetes", Library::kubernetes), Map.entry("github", Library::github),
        Map.entry("sentry", Library::sentry), Map.entry("stripe", Library::stripe), Map.entry("slack", Library::slack),
        Map.entry("okhttp", Library::okhttp));

    // ---- models ----

    private static Turn openai(String key) {
        var c = OpenAIOkHttpClient.builder().apiKey(key).build();
        var ask = ChatCompletionCreateParams.builder().model("m").addUserMessage(QUESTION).build();
        return n -> {
            same(c.chat().completions().create(ask).choices().get(0).message().content().get(), TEXT);
            var all = new StringBuilder();
            try (var parts = c.chat().completions().createStreaming(ask)) {
                parts.stream().forEach(p -> all.append(p.choices().get(0).delta().content().orElse("")));
            }
            same(all.toString(), TEXT);
        };
    }

    private static Turn anthropic(String key) {
        var c = AnthropicOkHttpClient.builder().apiKey(key).build();
        var ask = com.anthropic.models.messages.MessageCreateParams.builder().model("m").maxTokens(9L).addUserMessage(QUESTION)
            .build();
        return n -> same(c.messages().create(ask).content().get(0).asText().text(), TEXT);
    }

    private static Turn genai(String key) {
        var c = com.google.genai.Client.builder().apiKey(key).build();
        return n -> same(c.models.generateContent("m", QUESTION, null).text(), TEXT);
    }

    private static Turn langchain(String key) {
        var c = OpenAiChatModel.builder().apiKey(key).modelName("m").build();
        return n -> same(c.chat(QUESTION), TEXT);
    }

    // ---- clouds ----

    private static StaticCredentialsProvider aws(String key) {
        return StaticCredentialsProvider.create(AwsBasicCredentials.create(key, "x"));
    }

    private static Turn s3(String key) {
        var c = S3Client.builder().region(Region.EU_WEST_1).credentialsProvider(aws(key)).build();
        return n -> {
            c.putObject(b -> b.bucket("acme").key("door/" + n), RequestBody.fromString("shut\n".repeat(n)));
            same(c.getObjectAsBytes(b -> b.bucket("acme").key("door.txt")).asUtf8String(), TEXT);
            same(c.listObjectsV2(b -> b.bucket("acme")).contents().get(0).key(), "door.txt");
        };
    }

    private static Turn sts(String key) {
        var c = StsClient.builder().region(Region.EU_WEST_1).credentialsProvider(aws(key)).build();
        return n -> same(c.getCallerIdentity().userId(), TEXT);
    }

    private static Turn bedrock(String key) {
        var c = BedrockRuntimeClient.builder().region(Region.EU_WEST_1).credentialsProvider(aws(key)).build();
        return n -> same(c.converse(b -> b.modelId("acme.m").messages(m -> m.role("user").content(ContentBlock.fromText(QUESTION))))
            .output().message().content().get(0).text(), TEXT);
    }

    private static Turn minio(String key) {
        var c = MinioClient.builder().endpoint("https://minio.example.com").region("us-east-1").credentials(key, "x").build();
        return n -> {
            var found = c.listBuckets(ListBucketsArgs.builder().build()).iterator();
            same(found.next().get().name(), "acme");
        };
    }

    private static Turn googleAuth(String key) {
        return n -> same(UserCredentials.newBuilder().setClientId("door").setClientSecret("x").setRefreshToken(key).build()
            .refreshAccessToken().getTokenValue(), "token-of-the-double");
    }

    private static Turn azureIdentity(String key) {
        return n -> same(new ClientSecretCredentialBuilder().tenantId("acme").clientId("door").clientSecret(key).build()
            .getTokenSync(new TokenRequestContext().addScopes("https://vault.azure.net/.default")).getToken(),
            "token-of-the-double");
    }

    private static Turn kubernetes(String key) {
        var c = new KubernetesClientBuilder().withConfig(new ConfigBuilder(Config.empty())
            .withMasterUrl("https://kube.example.com").withOauthToken(key).build()).build();
        return n -> {
            same(c.pods().inNamespace("acme").list().getItems().get(0).getMetadata().getName(), "door");
            same(c.pods().inAnyNamespace().list().getItems().get(0).getMetadata().getNamespace(), "acme");
        };
    }

    // ---- code, money, messages ----

    private static Turn github(String key) throws Exception {
        var c = new GitHubBuilder().withOAuthToken(key).build();
        return n -> {
            var repository = c.getRepository("acme/door");
            same(repository.getDescription(), TEXT);
            same(repository.getIssue(7).getTitle(), TEXT);
        };
    }

    private static Turn sentry(String key) {
        Sentry.init(o -> o.setDsn("https://" + key + "@o1.ingest.sentry.io/1"));
        return n -> {
            Sentry.captureMessage("door " + n);
            Sentry.flush(10_000);
        };
    }

    private static Turn stripe(String key) {
        var c = new StripeClient(key);
        return n -> {
            same(c.v1().customers().create(CustomerCreateParams.builder().setName("Ann").build()).getName(), TEXT);
            same(c.v1().customers().retrieve("cus_1").getName(), TEXT);
        };
    }

    private static Turn slack(String key) {
        var c = Slack.getInstance().methods(key);
        return n -> {
            same(c.authTest(r -> r).getTeam(), TEXT);
            same(c.chatPostMessage(r -> r.channel("C1").text("door")).getMessage().getText(), TEXT);
        };
    }

    private static Turn okhttp(String key) {
        var c = new OkHttpClient();
        return n -> {
            try (var said = c.newCall(new Request.Builder().url("https://doors.acme.example/door").header("Authorization",
                    "Bearer " + key).build()).execute()) {
                same(said.body().string(), TEXT);
            }
        };
    }

    /** Of the archive that has this artifact. */
    private static String version(String artifact) {
        var begin = artifact.substring(artifact.indexOf(':') + 1) + "-";
        for (var at : System.getProperty("java.class.path").split(File.pathSeparator)) {
            var name = new File(at).getName();
            if (name.startsWith(begin) && Character.isDigit(name.charAt(begin.length())))
                return name.substring(begin.length(), name.length() - ".jar".length());
        }
        return "?";
    }

    public static void main(String[] args) throws Exception {
        var turns = Integer.parseInt(args[2]);
        var turn = APIS.get(args[0]).of(args[3]);
        for (var n = 1; n <= turns; n++)
            turn.make(n);
        System.out.println("{\"turns\": " + turns + ", \"version\": \"" + version(args[1]) + "\"}");
        System.exit(0); // some libraries keep threads
    }
}
