"""Uses a client that was generated from the standard's API description, unchanged, against a running service.

Usage: client.py API-DESCRIPTION BASE-URL SUBSCRIPTIONS

SUBSCRIPTIONS is a JSON list of pairs: a type as it is asked for, and a subscription of it.
"""

import json
import subprocess
import sys
import tempfile
from http import HTTPStatus
from pathlib import Path

import yaml


def generate(description: Path, folder: Path) -> None:
    """Generates the package `client`. The description's response codes are YAML integers; JSON has text keys."""
    document = yaml.safe_load(description.read_text())
    source = folder / "api.json"
    source.write_text(json.dumps(document, default=str))
    tool = Path(sys.executable).with_name("openapi-python-client")
    command = [tool, "generate", "--path", source, "--output-path", folder / "client", "--meta", "none"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def use(base: str, subscriptions: list[tuple[str, dict]]) -> None:
    """Calls every operation, those of subscriptions with each type of them."""
    from client import AuthenticatedClient, models
    from client.api.rni import (
        layer_2_meas_info_get,
        plmn_info_get,
        rab_info_get,
        subscription_link_list_subscriptions_get,
        subscriptions_delete,
        subscriptions_get,
        subscriptions_post,
        subscriptions_put,
    )
    from client.api.unsupported import s_1_bearer_info_get  # AdvantEDGE does not support it; we do.

    client = AuthenticatedClient(base_url=base, token="its-own")
    with client:
        bearers = rab_info_get.sync(client=client, app_ins_id="app", cell_id=["0000007", "0000008"])
        assert isinstance(bearers, models.RabInfo), bearers
        assert bearers.cell_user_info[0].ue_info[0].erab_info[0].erab_id == 5
        plmn = plmn_info_get.sync(client=client, app_ins_id=["a", "b"])
        assert plmn[1].app_instance_id == "b", plmn
        s1 = s_1_bearer_info_get.sync(client=client, gtp_teid=["7"])
        bearer = s1.to_dict()["s1UeInfo"][0]["s1BearerInfoDetailed"][0]
        assert bearer["sGwInfo"]["tunnelId"] == "8", s1
        layer2 = layer_2_meas_info_get.sync(client=client, dl_total_prb_usage_cell=1, dl_nongbr_throughput_ue=1)
        assert layer2.cell_info[0].dl_total_prb_usage_cell == 25, layer2
        assert layer2.cell_ue_info[0].dl_nongbr_throughput_ue == 10_000, layer2

        for number, (query, wanted) in enumerate(subscriptions):
            kind = getattr(models, wanted["subscriptionType"])
            created = subscriptions_post.sync_detailed(client=client, body=kind.from_dict(wanted))
            assert created.status_code == HTTPStatus.CREATED, created
            link = created.parsed.to_dict()["_links"]["self"]["href"]
            name = link.rsplit("/", 1)[1]
            read = subscriptions_get.sync(name, client=client).to_dict()
            assert read["subscriptionType"] == wanted["subscriptionType"], read
            assert read["callbackReference"] == wanted["callbackReference"], read
            listed = subscription_link_list_subscriptions_get.sync(client=client, subscription_type=query)
            assert [entry.href for entry in listed.field_links.subscription] == [link], listed
            everything = subscription_link_list_subscriptions_get.sync(client=client)
            assert len(everything.field_links.subscription) == number + 1, everything
            body = kind.from_dict(wanted | {"_links": {"self": {"href": link}}})
            changed = subscriptions_put.sync_detailed(name, client=client, body=body)
            assert changed.status_code == HTTPStatus.OK, changed
        assert number == 8, "the standard has nine types"
        for entry in everything.field_links.subscription:
            name = entry.href.rsplit("/", 1)[1]
            assert subscriptions_delete.sync_detailed(name, client=client).status_code == HTTPStatus.NO_CONTENT
            problem = subscriptions_get.sync(name, client=client)
            assert isinstance(problem, models.ProblemDetails) and problem.status == HTTPStatus.NOT_FOUND, problem


def main() -> None:
    """Generates the client and uses it."""
    description, base, subscriptions = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(description), Path(folder))
        sys.path.insert(0, folder)
        use(base, json.loads(subscriptions))


if __name__ == "__main__":
    main()
