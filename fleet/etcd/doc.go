// Package etcd is the ledger of many machines: keys of an etcd cluster. Its tests run servers of etcd 3.7. It is a module of its own, since
// etcd's client needs gRPC and protobuf.
//
// # Words
//
// A cluster is an odd number of etcd servers, which this package calls servers: a member is a process of a fleet. It has a quorum while
// more than half of its servers answer each other. The prefix is the beginning of all keys of a fleet: fleets of one cluster have
// different ones, of which none begins with another. A revision is one of the cluster, so other keys raise it, too.
//
// # How it keeps the promises of a ledger
//
// A transaction is one of etcd: it compares the revisions that last wrote its keys; for a prefix, of all keys in its range. A read is
// linearizable, by one request, and so of one revision. A lease is one of etcd in whole seconds, which is renewed four times in its life;
// each renewal may reach another server. The holder takes its lease for ended when its time is over since it sent the last renewal that
// was answered: that is before the cluster ends it. No lock of etcd is used, and no decision depends on a clock: compares in the
// ledger and fences at the device refuse a holder whose lease has ended.
//
// A watch follows the revisions. Where it has lost its place, because the history was compacted or its server is gone, the ledger asks
// for the revision again: waiting callers read all pairs, not the history. Each wait ends after a second at the latest.
//
// # Stated times
//
// While the cluster has a quorum, all that a dead holder had is granted again within the time of its lease and two seconds: twelve, with
// fleet.LeaseTime. A new leader begins the time of all leases again: where one is elected in that time, within twice as much.
//
// Where a server is killed, hangs, or is cut off, gangs are granted again within two seconds: after the loss, or after the election of
// another leader where it led. The cluster elects one in one or two seconds with etcd's defaults, and no setting of this package changes
// that. Leases of fleet.LeaseTime live on.
//
// Half a second of that is the interval in which a ledger asks the one server that it uses for the term of its leader, and half a second is
// how long this may take; a call that fails has it asked at once. A server that does not answer, refuses connections, or knows no leader is
// left: the ledger asks all at once, and uses the first that answers, for calls, renewals and the watch. It begins with any, and returns to
// none. A server answers this question alone, so one whose leader or disk is overloaded is not left.
//
// Calls do not outlast the server or the leader that they were sent to: reads, new leases, ends and renewals of leases are repeated at once. A
// transaction is repeated only where the cluster has surely not carried it out: it knew no leader, or had too much to do. Otherwise it
// fails with an *UnreachableError, and the fleet looks at the books again. Each call ends after four seconds at the latest.
//
// # When servers are lost
//
//   - One of three is killed, stops, or is cut off: the others serve on, or again after an election. Until then calls fail or take longer. Nothing
//     is lost that was committed.
//   - Without a quorum nothing is granted. Reads and transactions fail with an *UnreachableError, and holders end when their leases'
//     time is over, since nobody can renew them. After that all begins again by itself.
//   - A server's database is full: nothing new is granted, with a *FullError, and grants live and end as before. After the database was
//     compacted and defragmented and the alarm disarmed, all begins again by itself. Gangs that wait keep their place.
//   - A member that is cut off from all servers loses its leases like a dead one, and gives back its memory.
//   - The cluster lost its disks: a new, empty one with smaller revisions is another ledger. End the processes of the fleet first. A
//     backup is restored with etcdutl's flag --bump-revision, so that no fence comes back.
//
// # Security
//
// Who can write the keys can take any memory of the fleet. So Open wants mutual TLS: https endpoints, and a certificate of this process,
// which the servers ask for with --client-cert-auth. Config.Insecure turns that off, for a cluster that only this host can reach. With
// etcd's authentication the user of the certificate needs the role to read and write the range of the prefix.
//
// # Limits
//
// A transaction of more compares or more changes than the cluster's --max-txn-ops (128) or of more bytes than its --max-request-bytes
// (1.5 MiB) is refused with a *TooLargeError, and changes nothing: it is not split, since its parts would not be all or nothing. The
// transactions of a fleet are below both. A snapshot has at most 64 MiB.
//
// Package fleet has the sizes of fleets. The cluster sends each change to each member, as one watch, and answers two small questions a second
// of each; a read has the keys that its caller looks at, in one request for up to 100 of them. Fleets of eight devices were measured on
// servers, larger ones by simulation.
//
// Each transaction adds a revision: let the cluster compact its history, by --auto-compaction-retention.
package etcd
