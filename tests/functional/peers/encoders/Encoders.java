// What Java's encoders and those of usual libraries make of a text: lines of JSON, [name, text].
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.common.html.HtmlEscapers;
import com.google.common.net.UrlEscapers;
import com.google.common.xml.XmlEscapers;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.net.URLEncoder;

public class Encoders {
    static final Gson plain = new GsonBuilder().disableHtmlEscaping().create();

    static void say(String name, String text) {
        System.out.println(plain.toJson(new String[] {"Java: " + name, text}));
    }

    public static void main(String[] args) throws Exception {
        String value = args[0];
        say("Gson", new Gson().toJson(value));
        say("Jackson", new ObjectMapper().writeValueAsString(value));
        say("URLEncoder", URLEncoder.encode(value, "UTF-8"));
        say("Guava, HTML", HtmlEscapers.htmlEscaper().escape(value));
        say("Guava, an XML attribute", XmlEscapers.xmlAttributeEscaper().escape(value));
        say("Guava, a segment of a path", UrlEscapers.urlPathSegmentEscaper().escape(value));
        say("Guava, a fragment", UrlEscapers.urlFragmentEscaper().escape(value));
        say("Guava, a form", UrlEscapers.urlFormParameterEscaper().escape(value));
    }
}
