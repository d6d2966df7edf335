import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Java's own HttpClient as it is: in clear it offers h2c with its request. Arguments: URL. */
public class Clear {
    public static void main(String[] arguments) throws Exception {
        HttpRequest asked = HttpRequest.newBuilder(URI.create(arguments[0])).build();
        System.out.println(HttpClient.newHttpClient().send(asked, HttpResponse.BodyHandlers.ofString()).body());
    }
}
