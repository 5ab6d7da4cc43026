"""What the room adds to the registration door, under /register/v1/."""

from django.urls import path

from partitions import cleaned_door

app_name = "cleaning"
urlpatterns = [path("cleaned", cleaned_door.cleaned, name="cleaned")]
