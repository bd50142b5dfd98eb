/*
 * The floor of bench/llm_proxy: what any relay of texts has to pay that passes each on as it comes.
 * Waits by epoll, reads, writes the same bytes to the other side; nothing is parsed, counted or
 * kept. One connection to the server for each of a client. Prints the port that it listens on.
 *
 *   bare_relay PORT_OF_THE_SERVER
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_FDS 4096
#define EVENTS  64

struct relay {
    int epoll, listener;
    struct sockaddr_in server;
    int other[MAX_FDS]; /* the descriptor of the other side */
};

static void watch(struct relay *r, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &event);
}

static int listen_on(struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)address, length) || listen(fd, 256) ||
        getsockname(fd, (struct sockaddr *)address, &length))
        return -1;
    return fd;
}

static void accept_one(struct relay *r)
{
    const int on = 1;
    int client = accept(r->listener, NULL, NULL), server = socket(AF_INET, SOCK_STREAM, 0);
    if (client < 0 || server < 0 || client >= MAX_FDS || server >= MAX_FDS ||
        connect(server, (struct sockaddr *)&r->server, sizeof r->server)) {
        perror("bare_relay");
        exit(1);
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    r->other[client] = server;
    r->other[server] = client;
    watch(r, client);
    watch(r, server);
}

/* A client that does not read stops all of them: those of the bench read. */
static void pass_on(struct relay *r, int fd)
{
    static char bytes[1 << 16];
    int other = r->other[fd];
    if (other < 0)
        return; /* closed in this round */
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    for (ssize_t sent = 0, part; n > 0 && sent < n; sent += part)
        if ((part = send(other, bytes + sent, (size_t)(n - sent), MSG_NOSIGNAL)) < 0)
            n = 0;
    if (n > 0)
        return;
    close(fd);
    close(other);
    r->other[fd] = r->other[other] = -1;
}

int main(int argc, char **argv)
{
    static struct relay r;
    struct epoll_event events[EVENTS];
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (argc != 2)
        return 2;
    r.server = own;
    r.server.sin_port = htons((uint16_t)atoi(argv[1]));
    r.listener = listen_on(&own);
    r.epoll = epoll_create1(0);
    if (r.listener < 0 || r.epoll < 0)
        return 1;
    watch(&r, r.listener);
    printf("%d\n", ntohs(own.sin_port));
    fflush(stdout);
    for (;;) {
        int n = epoll_wait(r.epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == r.listener)
                accept_one(&r);
            else
                pass_on(&r, events[i].data.fd);
        }
    }
}
