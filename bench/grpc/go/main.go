// Clients and a yardstick of the Lakh protocol, as a program in Go would be written with grpc-go and generated code.
//
//	bench through ADDRESS JOBS    jobs a second from a producer through the server to a consumer
//	bench serve                   a bare server that keeps nothing: each job that arrives is sent to the consumer
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"bench/lakh"
)

const queue = "bench"

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func dial(address string) lakh.LakhClient {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	return lakh.NewLakhClient(connection)
}

func withNames() context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "job_names", queue)
}

// Ids of no earlier run: a server keeps the records of ended jobs, and replacing those is another case.
var run = strconv.FormatInt(time.Now().UnixMilli()%1_000_000_000, 36)

func jobOf(i int) *lakh.Job {
	return &lakh.Job{
		Id:              run + "-" + strconv.Itoa(i),
		Name:            queue,
		Args:            []string{"user@example.org", "4711"},
		ExecutionTime:   &lakh.Job_Immediate{Immediate: &emptypb.Empty{}},
		ReservationTime: durationpb.New(10 * time.Minute),
	}
}

func produce(address string, jobs int) {
	stream, err := dial(address).Work(withNames())
	must(err)
	for i := 0; i < jobs; i++ {
		must(stream.Send(jobOf(i)))
	}
	_, err = stream.CloseAndRecv()
	must(err)
}

// Receives and reports every job; a second goroutine sends, as grpc-go allows.
func consume(address string, jobs int, joined chan<- struct{}) {
	stream, err := dial(address).Join(withNames())
	must(err)
	_, err = stream.Header()
	must(err)
	close(joined)
	reports := make(chan *lakh.JobResult, 1024)
	sent := make(chan struct{})
	go func() {
		for report := range reports {
			must(stream.Send(report))
		}
		must(stream.CloseSend())
		close(sent)
	}()
	seen := make(map[string]bool, jobs)
	for len(seen) < jobs {
		job, err := stream.Recv()
		must(err)
		seen[job.Id] = true
		reports <- &lakh.JobResult{JobId: job.Id, JobName: job.Name, Status: lakh.JobStatus_SUCCEEDED}
	}
	close(reports)
	<-sent
	// The server ends the stream when every report is stored.
	for {
		if _, err := stream.Recv(); err == io.EOF {
			return
		} else {
			must(err)
		}
	}
}

func through(address string, jobs int) {
	joined, done := make(chan struct{}), make(chan struct{})
	go func() {
		consume(address, jobs, joined)
		close(done)
	}()
	<-joined
	start := time.Now()
	produce(address, jobs)
	accepted := time.Since(start)
	<-done
	fmt.Printf("{\"accepted\":%.0f,\"rate\":%.0f}\n", float64(jobs)/accepted.Seconds(), float64(jobs)/time.Since(start).Seconds())
}

// Passes jobs on through a channel: the least that a server in Go does for them.
type bare struct {
	lakh.UnimplementedLakhServer
	jobs chan *lakh.Job
}

func (server *bare) Work(stream grpc.ClientStreamingServer[lakh.Job, emptypb.Empty]) error {
	for {
		job, err := stream.Recv()
		if err == io.EOF {
			return stream.SendAndClose(&emptypb.Empty{})
		}
		if err != nil {
			return err
		}
		server.jobs <- job
	}
}

func (server *bare) Join(stream grpc.BidiStreamingServer[lakh.JobResult, lakh.Job]) error {
	must(stream.SendHeader(metadata.MD{}))
	over := make(chan error, 1)
	go func() {
		for {
			if _, err := stream.Recv(); err != nil {
				over <- err
				return
			}
		}
	}()
	for {
		select {
		case job := <-server.jobs:
			if err := stream.Send(job); err != nil {
				return err
			}
		case err := <-over:
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	server := grpc.NewServer()
	lakh.RegisterLakhServer(server, &bare{jobs: make(chan *lakh.Job, 1_000_000)})
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	must(server.Serve(listener))
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	must(err)
	return value
}

func main() {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "through":
		through(os.Args[2], number(os.Args[3]))
	case len(os.Args) == 2 && os.Args[1] == "serve":
		serve()
	default:
		log.Fatal("usage: bench through ADDRESS JOBS | serve")
	}
}
