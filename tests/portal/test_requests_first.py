import pytest
from django.urls import reverse
from portal import deciding
from tests.portal import asked

def test_pages(portal, client, client_of):
    r = [asked.more(portal), asked.back(portal), asked.storage(portal)]
    for one in r:
        assert client.get(portal.address("request", one.public_id)).status_code == 200
    page = client.get(portal.address("requests"))
    assert page.status_code == 200
    op = client_of(portal.provider.olga)
    assert op.get("/requests/").status_code == 200
    for one in r:
        assert op.get(reverse("portal:operator_request", args=[one.public_id])).status_code == 200
    home = op.get("/").content.decode()
    assert "3 requests of tenants wait" in home
    for one in r[1:]:
        a = op.post(reverse("portal:operator_approve", args=[one.public_id]), {"answer": "yes"}, follow=True)
        print(a.content.decode()[:0])
        assert asked.fresh(one).state == "APPROVED", a.content.decode()
