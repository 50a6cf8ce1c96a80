// Package claims decides what becomes of the requests of a stream that did not end on the fast path. It has no goroutine, clock or
// driver: package streams tells it what has happened and does what it says.
//
// A claim is one request, for a buffer or for a batch. What moves it:
//
//	from                        event                                              to
//	(arrives)                   neither of the next row                            Served
//	(arrives)                   its tenant owes, or it waits behind other claims   Parked
//	Served                      memory found                                       (answered)
//	Served                      search found nothing                               Asked
//	Asked                       granted                                            Served
//	Asked                       refused, and the caller has a handler              Consulted
//	Asked, Consulted            refused, and fences keep freed memory              Delayed
//	Asked, Consulted, Delayed   refused for want of memory, and it may wait        Parked
//	Asked, Consulted, Delayed   refused otherwise                                  (answered)
//	Consulted                   the handler says: try again                        Served
//	Delayed                     a fence passed                                     Served
//	Parked                      granted, or offered what its stream keeps          Served
//
// Its states:
//
//   - Served: in its stream's turn, or on the way there.
//   - Asked: the pool was asked for what is missing.
//   - Consulted: the pool has refused, and the caller's handler is asked whether to try once more.
//   - Delayed: the pool has refused, and a fence that keeps freed memory has yet to pass.
//   - Parked: it waits in the pool for other callers' frees, or for its tenant's quota, and holds nothing.
//
// Claim decides about one claim (Arrive, Refused), Bill about what its tenant is charged, Table knows all that wait and which
// answers have to wait for pages on their way, Looks says when a look at fences may spare the pool a request, and FenceWait when
// a goroutine waits for them.
package claims
