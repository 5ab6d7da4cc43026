import asyncio

from django.http import HttpResponse
from django.test import RequestFactory

from audit.request_id import HEADER, RequestIdMiddleware, current_request_id, request_id


def answer(request):
    return HttpResponse(current_request_id())


def test_each_request_has_an_id_of_its_own_and_says_it():
    middleware = RequestIdMiddleware(answer)
    one, other = (middleware(RequestFactory().get("/")) for _ in range(2))
    assert one.content.decode() == one[HEADER] != other[HEADER]
    assert len(one[HEADER]) == 16
    assert current_request_id() == ""


def test_an_id_that_came_with_the_request_is_not_taken_over():
    response = RequestIdMiddleware(answer)(RequestFactory().get("/", headers={HEADER: "somebody-else"}))
    assert response[HEADER] != "somebody-else"


def test_concurrent_async_requests_keep_theirs_apart():
    async def slow(request):
        before = current_request_id()
        await asyncio.sleep(0)
        assert current_request_id() == before
        return HttpResponse(before)

    async def both():
        middleware = RequestIdMiddleware(slow)
        return await asyncio.gather(*(middleware(RequestFactory().get("/")) for _ in range(5)))

    responses = asyncio.run(both())
    assert len({response[HEADER] for response in responses}) == 5
    assert all(response.content.decode() == response[HEADER] for response in responses)


def test_a_task_may_go_on_under_the_id_of_its_request():
    with request_id("abc"):
        assert current_request_id() == "abc"
    assert current_request_id() == ""
