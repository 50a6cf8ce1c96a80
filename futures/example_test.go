package futures_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-vram/vram/futures"
)

// A producer answers at once where it can and makes a promise where it cannot.
func Example() {
	ready := futures.Done(1)
	promise := futures.NewPromise[int](nil)
	later := promise.Future()
	go promise.Complete(2, nil)

	for _, f := range []futures.Future[int]{ready, later} {
		v, err := f.Await(context.Background())
		fmt.Println(v, err)
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
}

// If the cancellation comes first, the producer keeps its value.
func ExampleFuture_Cancel() {
	promise := futures.NewPromise[string](func() { fmt.Println("nobody wants it any more") })
	f := promise.Future()
	fmt.Println(f.Cancel())
	fmt.Println(promise.Complete("too late", nil))
	_, err := f.Await(context.Background())
	fmt.Println(errors.Is(err, futures.ErrCanceled))
	// Output:
	// nobody wants it any more
	// true
	// false
	// true
}

func ExampleThen() {
	bytes := futures.Done(3)
	text := futures.Then(bytes, func(n int) (string, error) { return fmt.Sprint(n, " MiB"), nil })
	fmt.Println(text.Await(context.Background()))

	bad := futures.Then(bytes, func(int) (string, error) { panic("out of luck") })
	_, err := bad.Await(context.Background())
	var panicked *futures.PanicError
	fmt.Println(errors.As(err, &panicked), panicked.Value)
	// Output:
	// 3 MiB <nil>
	// true out of luck
}

// All owns its parts where it has a release function: arrived values go back when another part
// fails.
func ExampleAll() {
	release := func(v int) { fmt.Println("released", v) }
	failed := futures.Failed[int](errors.New("no memory"))
	_, err := futures.All(release, futures.Done(1), failed).Await(context.Background())
	fmt.Println(err)

	fmt.Println(futures.All(nil, futures.Done(1), futures.Done(2)).Await(context.Background()))
	// Output:
	// released 1
	// no memory
	// [1 2] <nil>
}

func ExampleFirst() {
	slow := futures.NewPromise[string](func() { fmt.Println("the slow one is canceled") })
	release := func(string) {}
	fmt.Println(futures.First(release, slow.Future(), futures.Done("fast")).Await(context.Background()))
	// Output:
	// the slow one is canceled
	// fast <nil>
}
