import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.WebSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;

/** Java's own HttpClient in the matrix: as matrix.py. Arguments: MARK. Java reads no proxy variable, so
 * the program does, as a user's would. */
public class Matrix {
    static final String ASK = "{\"model\":\"m\",\"stream\":true,\"messages\":[]}";
    static final List<String> cells = new ArrayList<>();

    static void cell(String column, String version, String answer, double spread) {
        cells.add(String.format("\"%s\": [\"%s\", \"%s\", %s]", column, version, answer, spread));
    }

    static HttpClient client(HttpClient.Version version) {
        HttpClient.Builder b = HttpClient.newBuilder().version(version).connectTimeout(Duration.ofSeconds(20));
        String proxy = System.getenv("https_proxy");
        if (proxy != null) {
            URI at = URI.create(proxy);
            b.proxy(ProxySelector.of(new InetSocketAddress(at.getHost(), at.getPort())));
        }
        return b.build();
    }

    static void who(HttpClient c, String column, String mark) throws Exception {
        URI uri = URI.create("https://" + column + ".example.com/who?cell=" + mark + "-" + column);
        HttpResponse<String> r = c.send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString());
        cell(column, r.version().toString(), r.body().replaceAll(".*\"login\": *\"(\\w+)\".*", "$1").trim(), 0);
    }

    static void events(HttpClient c, String mark) throws Exception {
        URI uri = URI.create("https://stream.example.com/v1/chat/completions?cell=" + mark + "-sse");
        List<Long> times = new ArrayList<>();
        StringBuilder words = new StringBuilder();
        c.send(HttpRequest.newBuilder(uri).POST(HttpRequest.BodyPublishers.ofString(ASK)).build(),
            HttpResponse.BodyHandlers.ofLines()).body().forEach(line -> {
                if (line.startsWith("data: ") && line.contains("\"delta\"")) {
                    times.add(System.nanoTime());
                    words.append(line.contains("\"content\"") ? line.replaceAll(
                        ".*\"content\": \"([^\"]*)\".*", "$1") : "");
                }
            });
        cell("sse", "", words.toString(), (times.get(times.size() - 1) - times.get(0)) / 1e9);
    }

    static void socket(HttpClient c, String mark) throws Exception {
        CompletableFuture<String> got = new CompletableFuture<>();
        WebSocket ws = c.newWebSocketBuilder().buildAsync(
            URI.create("wss://socket.example.com/?cell=" + mark + "-ws"), new WebSocket.Listener() {
                @Override
                public CompletionStage<?> onText(WebSocket s, CharSequence text, boolean last) {
                    got.complete(text.toString());
                    return null;
                }
            }).get(20, TimeUnit.SECONDS);
        ws.sendText("octo", true).get(20, TimeUnit.SECONDS);
        cell("ws", "", got.get(20, TimeUnit.SECONDS), 0);
        ws.sendClose(WebSocket.NORMAL_CLOSURE, "").get(20, TimeUnit.SECONDS);
    }

    public static void main(String[] args) throws Exception {
        HttpClient h1 = client(HttpClient.Version.HTTP_1_1), h2 = client(HttpClient.Version.HTTP_2);
        who(h1, "h1", args[0]);
        who(h2, "h2", args[0]);
        events(h2, args[0]);
        socket(h1, args[0]);
        System.out.println("{" + String.join(", ", cells) + "}");
        System.exit(0);
    }
}
