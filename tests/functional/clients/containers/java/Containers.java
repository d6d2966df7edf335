import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import org.testcontainers.containers.Container;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.PostgreSQLContainer;
import org.testcontainers.utility.DockerImageName;
import redis.clients.jedis.Jedis;

/** Testcontainers' example for Java: Redis and PostgreSQL, as tests/functional/inside/containers.py. */
public class Containers {
    public static void main(String[] args) throws Exception {
        try (GenericContainer<?> redis = new GenericContainer<>("localhost/redis:1").withExposedPorts(6379)) {
            redis.start();
            try (Jedis client = new Jedis(redis.getHost(), redis.getMappedPort(6379))) {
                client.set("key", "value");
                System.out.println("redis " + client.get("key"));
            }
        }
        try (PostgreSQLContainer<?> postgres = new PostgreSQLContainer<>(
                 DockerImageName.parse("localhost/postgres:1").asCompatibleSubstituteFor("postgres"))) {
            postgres.start();
            try (Connection c = DriverManager.getConnection(postgres.getJdbcUrl(), postgres.getUsername(), postgres.getPassword());
                 ResultSet r = c.createStatement().executeQuery("select version()")) {
                r.next();
                System.out.println("postgres " + r.getString(1));
            }
            for (String url : new String[] {"https://deps.example.com/java", "https://evil.example.com/"}) {
                Container.ExecResult r = postgres.execInContainer("curl", "-sS", "-m", "5", url);
                System.out.println(r.getExitCode() + " " + r.getStdout() + r.getStderr());
            }
        }
    }
}
