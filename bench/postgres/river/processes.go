package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

const (
	smallChunk  = 100
	concurrency = 100
)

// From the first insert in this process until the worker has handled the last job, after as many warm-up jobs.
func twoProcesses(ctx context.Context, pool *pgxpool.Pool, url string, jobs int) result {
	next, input := startWorker(url, jobs)
	defer input.Close()
	next()
	client := inserter(pool, river.FetchCooldownMin)
	pass := func() time.Duration {
		var inserting sync.WaitGroup
		defer inserting.Wait()
		started := time.Now()
		inserting.Go(func() { insertMany(ctx, client, jobs, smallChunk) })
		next()
		return time.Since(started)
	}
	pass()
	return rate(jobs, pass())
}

// Starts the second process and returns what waits for its next line. It ends when its input is closed, or when this process ends.
func startWorker(url string, jobs int) (next func(), input io.Closer) {
	program, err := os.Executable()
	must(err)
	command := exec.Command(program, "worker", url, strconv.Itoa(jobs))
	command.Stderr = os.Stderr
	input, err = command.StdinPipe()
	must(err)
	output, err := command.StdoutPipe()
	must(err)
	must(command.Start())
	lines := bufio.NewScanner(output)
	next = func() {
		if !lines.Scan() {
			log.Fatal("the worker process ended early")
		}
	}
	return next, input
}

func workForOthers(ctx context.Context, pool *pgxpool.Pool, jobs int) {
	var handled atomic.Int64
	start(ctx, pool, concurrency, func() {
		if handled.Add(1)%int64(jobs) == 0 {
			fmt.Println("handled")
		}
	})
	fmt.Println("ready")
	select {}
}
