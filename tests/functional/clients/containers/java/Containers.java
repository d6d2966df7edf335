import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.util.List;
import org.testcontainers.containers.Container;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.PostgreSQLContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;
import redis.clients.jedis.Jedis;

/** Testcontainers' example for Java: Redis and PostgreSQL, as tests/functional/inside/containers.py. */
public class Containers {
    /** Containers have the sandbox's own network: a port is what it is inside. */
    static class Postgres extends PostgreSQLContainer<Postgres> {
        Postgres(String image) {
            super(DockerImageName.parse(image).asCompatibleSubstituteFor("postgres"));
            withNetworkMode("host");
            setExposedPorts(List.of());
        }

        @Override
        public Integer getMappedPort(int port) {
            return port;
        }
    }

    public static void main(String[] args) throws Exception {
        try (GenericContainer<?> redis = new GenericContainer<>("localhost/redis:1").withNetworkMode("host")
                 .waitingFor(Wait.forLogMessage(".*Ready to accept connections.*", 1))) {
            redis.start();
            try (Jedis client = new Jedis(redis.getHost(), 6379)) {
                client.set("key", "value");
                System.out.println("redis " + client.get("key"));
            }
        }
        try (Postgres postgres = new Postgres("localhost/postgres:1")) {
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
