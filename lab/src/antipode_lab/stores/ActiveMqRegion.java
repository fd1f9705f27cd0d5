import java.io.File;
import java.io.FileReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.activemq.broker.BrokerPlugin;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.DestinationInterceptor;
import org.apache.activemq.broker.region.policy.FixedCountSubscriptionRecoveryPolicy;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.broker.region.policy.PolicyMap;
import org.apache.activemq.broker.region.virtual.CompositeQueue;
import org.apache.activemq.broker.region.virtual.CompositeTopic;
import org.apache.activemq.broker.region.virtual.VirtualDestination;
import org.apache.activemq.broker.region.virtual.VirtualDestinationInterceptor;
import org.apache.activemq.broker.region.virtual.VirtualTopic;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;
import org.apache.activemq.network.NetworkConnector;
import org.apache.activemq.security.AuthenticationUser;
import org.apache.activemq.security.AuthorizationEntry;
import org.apache.activemq.security.AuthorizationPlugin;
import org.apache.activemq.security.DefaultAuthorizationMap;
import org.apache.activemq.security.SimpleAuthenticationPlugin;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;

/** One region's ActiveMQ broker, as the properties file says that is its argument; all on the loopback address. */
public final class ActiveMqRegion {
    private ActiveMqRegion() {}

    /** Starts it, and runs until the process is ended. */
    public static void main(String[] arguments) throws Exception {
        Properties wanted = new Properties();
        try (FileReader file = new FileReader(arguments[0])) {
            wanted.load(file);
        }
        BrokerService broker = new BrokerService();
        broker.setBrokerName(wanted.getProperty("name"));
        broker.setUseJmx(false);
        broker.setSchedulerSupport(Boolean.parseBoolean(wanted.getProperty("scheduler")));
        broker.setDataDirectory(wanted.getProperty("data"));
        KahaDBPersistenceAdapter files = new KahaDBPersistenceAdapter();
        files.setDirectory(new File(wanted.getProperty("data"), "kahadb"));
        files.setJournalMaxFileLength(8 << 20);
        broker.setPersistenceAdapter(files);
        broker.getSystemUsage().getMemoryUsage().setLimit(48L << 20);
        broker.getSystemUsage().getStoreUsage().setLimit(1L << 30);
        broker.getSystemUsage().getTempUsage().setLimit(128L << 20);
        broker.addConnector("tcp://127.0.0.1:" + wanted.getProperty("openwire"));
        broker.addConnector("stomp://127.0.0.1:" + wanted.getProperty("stomp"));
        broker.setPlugins(new BrokerPlugin[] {users(wanted), rights()});
        broker.setDestinationPolicy(policies(Integer.parseInt(wanted.getProperty("remember"))));
        broker.setDestinationInterceptors(new DestinationInterceptor[] {copies(wanted)});
        if (wanted.containsKey("link")) {
            link(broker, wanted);
        }
        broker.start();
        broker.waitUntilStopped();
    }

    private static List<String> names(Properties wanted, String key) {
        List<String> found = new ArrayList<>();
        for (String name : wanted.getProperty(key, "").split(",")) {
            if (!name.isEmpty()) {
                found.add(name);
            }
        }
        return found;
    }

    private static BrokerPlugin users(Properties wanted) {
        List<AuthenticationUser> users = new ArrayList<>();
        users.add(new AuthenticationUser("system", "system", "all"));
        users.add(new AuthenticationUser("app", "app", "all"));
        users.add(new AuthenticationUser("publisher", "publisher", "writers"));
        users.add(new AuthenticationUser("reader", "reader", "readers"));
        return new SimpleAuthenticationPlugin(users);
    }

    private static BrokerPlugin rights() throws Exception {
        return new AuthorizationPlugin(new DefaultAuthorizationMap(List.of(
                entry(new ActiveMQTopic(">"), "all", "all,writers"),
                entry(new ActiveMQTopic("ActiveMQ.Advisory.>"), "all,writers,readers", "all,writers,readers"),
                entry(new ActiveMQQueue(">"), "all", "all,writers"),
                entry(new ActiveMQQueue("readers.>"), "all,readers", "all"))));
    }

    private static AuthorizationEntry entry(ActiveMQDestination which, String read, String write) throws Exception {
        AuthorizationEntry entry = new AuthorizationEntry();
        entry.setDestination(which);
        entry.setRead(read);
        entry.setWrite(write);
        entry.setAdmin(write);
        return entry;
    }

    /** Topics under antipode.tap keep their last messages, for those who subscribe later; but for one, of tests. */
    private static PolicyMap policies(int remember) {
        PolicyEntry taps = new PolicyEntry();
        taps.setTopic("antipode.tap.>");
        FixedCountSubscriptionRecoveryPolicy kept = new FixedCountSubscriptionRecoveryPolicy();
        kept.setMaximumSize(remember);
        taps.setSubscriptionRecoveryPolicy(kept);
        PolicyEntry forgetful = new PolicyEntry();
        forgetful.setTopic("antipode.tap.without-past");
        PolicyMap policies = new PolicyMap();
        policies.setPolicyEntries(List.of(taps, forgetful));
        return policies;
    }

    /**
     * What goes where. In A queues and topics are put into queues that cross the link, wan.NAME; in B those go to the
     * queue or topic, and after that to the tap: what a tap shows is in the queue.
     */
    private static DestinationInterceptor copies(Properties wanted) {
        boolean first = wanted.getProperty("region").equals("a");
        boolean taps = Boolean.parseBoolean(wanted.getProperty("taps"));
        List<VirtualDestination> found = new ArrayList<>();
        found.add(new VirtualTopic());
        for (String name : names(wanted, "queues")) {
            CompositeQueue queue = new CompositeQueue();
            queue.setName(first ? name : "wan." + name);
            queue.setForwardTo(targets(new ActiveMQQueue(first ? "wan." + name : name), taps ? name : null));
            found.add(queue);
        }
        for (String name : names(wanted, "topics")) {
            if (first) {
                CompositeTopic topic = new CompositeTopic();
                topic.setName(name);
                topic.setForwardOnly(false);
                topic.setForwardTo(targets(new ActiveMQQueue("wan." + name), taps ? name : null));
                found.add(topic);
            } else {
                CompositeQueue queue = new CompositeQueue();
                queue.setName("wan." + name);
                queue.setForwardTo(targets(new ActiveMQTopic(name), taps ? name : null));
                found.add(queue);
            }
        }
        VirtualDestinationInterceptor interceptor = new VirtualDestinationInterceptor();
        interceptor.setVirtualDestinations(found.toArray(new VirtualDestination[0]));
        return interceptor;
    }

    private static List<ActiveMQDestination> targets(ActiveMQDestination target, String tap) {
        return tap == null ? List.of(target) : List.of(target, new ActiveMQTopic("antipode.tap." + tap));
    }

    private static void link(BrokerService broker, Properties wanted) throws Exception {
        String retry = "initialReconnectDelay=100&maxReconnectDelay=300&useExponentialBackOff=false";
        NetworkConnector link =
                broker.addNetworkConnector("static:(tcp://127.0.0.1:" + wanted.getProperty("link") + ")?" + retry);
        link.setUserName("system");
        link.setPassword("system");
        link.setNetworkTTL(2);
        link.setStaticBridge(!Boolean.parseBoolean(wanted.getProperty("demand")));
        List<ActiveMQDestination> crossing = new ArrayList<>();
        crossing.add(new ActiveMQQueue("antipode-lab.probe"));
        names(wanted, "queues").forEach(name -> crossing.add(new ActiveMQQueue("wan." + name)));
        names(wanted, "topics").forEach(name -> crossing.add(new ActiveMQQueue("wan." + name)));
        names(wanted, "plain").forEach(name -> crossing.add(new ActiveMQTopic(name)));
        link.setStaticallyIncludedDestinations(crossing);
    }
}
